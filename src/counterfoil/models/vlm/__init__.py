"""Vision-language models over HTTP: any OpenAI-compatible endpoint, asked two-choice questions and scored."""

from counterfoil.models.vlm.model import VisionLanguageModel, load_vlm
from counterfoil.models.vlm.usage import Usage

__all__ = ["Usage", "VisionLanguageModel", "load_vlm"]
