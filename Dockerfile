# `ssil serve` in a container. The model directory is mounted, and read only:
#   docker build -t ssil .
#   docker run -p 8000:8000 -e SSIL_TOKEN=a-long-secret-of-yours -v "$PWD/birds:/model:ro" ssil
FROM python:3.13-slim
RUN apt-get update && apt-get install -y --no-install-recommends libgomp1 && rm -rf /var/lib/apt/lists/*
WORKDIR /ssil
COPY pyproject.toml constraints.txt README.md LICENSE ./
COPY src src
RUN pip install --no-cache-dir --constraint constraints.txt '.[studio]'
RUN useradd --create-home ssil
USER ssil
EXPOSE 8000
HEALTHCHECK CMD python -c "import urllib.request; urllib.request.urlopen('http://127.0.0.1:8000/health')"
ENTRYPOINT ["ssil", "serve", "/model", "--host", "0.0.0.0"]
