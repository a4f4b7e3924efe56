"""A vision-language model behind an OpenAI-compatible endpoint."""

import os

import counterfoil as cf

# COUNTERFOIL_VLM_URL and COUNTERFOIL_VLM_KEY say where and who; the page on VLMs has every setting
model = f"vlm:{os.environ.get('MODEL', 'llava-1.6')}"
result = cf.run("demo:", {"vlm": model}, edits=["background-plain"], limit=2, out="vlm-run")
print(result.headline[0])
print(result.photos()[["photo", "edit", "original_answer", "answer", "outcome"]].to_string(index=False))
