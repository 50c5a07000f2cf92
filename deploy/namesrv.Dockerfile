# The stand-alone NameServer in a container. From the root of the checkout:
#     docker build -f deploy/namesrv.Dockerfile -t nemesrv-namesrv .
#     docker run --rm -p 127.0.0.1:9876:9876 -v nemesrv:/data nemesrv-namesrv
FROM python:3.11-slim AS build
WORKDIR /src
COPY pyproject.toml constraints.txt README.md LICENSE ./
COPY actors ./actors
COPY chaos ./chaos
COPY conformance ./conformance
COPY operations ./operations
COPY clients ./clients
COPY remoting ./remoting
COPY src ./src
# the NameServer alone needs none of the harness (Ray, Spark, Toxiproxy), so only what it imports is installed
RUN python -m venv /opt/nemesrv \
    && /opt/nemesrv/bin/pip install --no-cache-dir --constraint constraints.txt click lz4 orjson uvloop zstandard \
    && /opt/nemesrv/bin/pip install --no-cache-dir --no-deps .

FROM python:3.11-slim
COPY --from=build /opt/nemesrv /opt/nemesrv
RUN useradd --system --uid 9876 --home-dir /data --create-home namesrv
USER 9876
ENV HOME=/data PYTHONUNBUFFERED=1
WORKDIR /data
VOLUME /data
EXPOSE 9876
STOPSIGNAL SIGTERM
# inside a container nobody reaches loopback: its own network is the fence here, and -p says who gets in
COPY deploy/container.conf /etc/nemesrv/namesrv.conf
HEALTHCHECK --interval=30s --timeout=3s CMD ["python3", "-c", "import socket; socket.create_connection(('127.0.0.1', 9876), 2).close()"]
ENTRYPOINT ["/opt/nemesrv/bin/nemesrv", "namesrv"]
CMD ["-c", "/etc/nemesrv/namesrv.conf"]
