"""Pictures and backgrounds from diffusion models."""
