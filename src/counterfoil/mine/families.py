"""The family of a model, from its address: whether failures carry over to another kind of network is the question."""

from __future__ import annotations

import re

_FAMILIES = (
    ("CLIP", r"clip|siglip|align"),
    ("vision-language model", r"llava|minigpt|qwen|gpt|blip|gemma|internvl|idefics|pixtral|^vlm\b|^https?:"),
    ("ConvNeXt", r"convnext"),
    ("EfficientNet", r"efficientnet|effnet"),
    ("MobileNet", r"mobilenet|mobileone|mobilevit"),
    ("PP-LCNet", r"lcnet"),
    ("Swin", r"swin"),
    ("DINO", r"dino"),
    ("MAE", r"\bmae\b|_mae"),
    ("BEiT", r"beit|eva0?2"),
    ("DeiT", r"deit|cait"),
    ("ViT", r"vit"),
    ("Mixer", r"mixer|resmlp"),
    ("DenseNet", r"densenet"),
    ("RegNet", r"regnet"),
    ("Inception", r"inception|xception|googlenet"),
    ("VGG", r"vgg"),
    ("AlexNet", r"alexnet"),
    ("SqueezeNet", r"squeezenet"),
    ("ShuffleNet", r"shufflenet"),
    ("ResNet", r"res(net|next|nest)|seresnet|\bbit\b"),
)  # the first that fits: a CLIP with a ViT inside is a CLIP


_FOLDERS = re.compile(r"[^:]*[/\\](?=[^:/\\]+\.(?:csv|onnx|parquet|pt|pth|py|safetensors)(?::|$))", re.IGNORECASE)


def family_of(address: str) -> str:
    """The family that the address names, or the letters its last part begins with; folders of a file say nothing."""
    lowered = _FOLDERS.sub("", address).lower()
    for name, pattern in _FAMILIES:
        if re.search(pattern, lowered):
            return name
    last = re.split(r"[/:\\]", address.rstrip("/"))[-1]
    letters = re.match(r"[A-Za-z]+", last)
    return letters[0] if letters else address
