"""The offline default: photos and networks that come from the package index alone."""
