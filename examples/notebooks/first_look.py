# %% [markdown]
# # First look: what breaks this network?
# The demo photos, a small network, two attributes.

# %%
import counterfoil as cf

result = cf.run(
    "demo:", {"lite0": "embedded:efficientnet-lite0"}, edits=["background-plain", "object-grayscale"], limit=12
)
result

# %% [markdown]
# One row per photo and edited picture, both answers side by side:

# %%
rows = result.photos()
rows[["photo", "attribute", "original_answer", "answer", "right"]].head()

# %% [markdown]
# The pictures of one photo:

# %%
cf.show(result, photo=rows["photo"][0])
