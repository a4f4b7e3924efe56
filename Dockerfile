# Runs the demo, or any command: docker run IMAGE demo --out /work/demo
FROM python:3.12-slim
RUN useradd --create-home counterfoil && mkdir /work && chown counterfoil /work
COPY . /src
RUN pip install --no-cache-dir '/src[pandas]' && rm -rf /src
USER counterfoil
WORKDIR /work
ENTRYPOINT ["counterfoil"]
CMD ["demo", "--out", "/work/demo"]
