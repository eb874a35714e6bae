# SPDX-License-Identifier: Apache-2.0
# A DDTREE server: the pinned SGLang with the series applied, and what it needs to run.
#
#   make image                  CUDA 12.8, for NVIDIA cards
#   make image PROFILE=cpu      for a machine without one; serves the tiny models by default
#
# Nothing is taken unverified: packages by the hashes in requirements/, SGLang's wheel by the
# one in upstream.toml, patches by their series.lock, and system packages by the base's own apt.
ARG BASE_IMAGE=nvidia/cuda:12.8.1-devel-ubuntu24.04

# hadolint ignore=DL3006
FROM ${BASE_IMAGE} AS build
ARG PROFILE=cu128
ARG RELEASE=0.5.11
ENV PIP_NO_CACHE_DIR=1
WORKDIR /opt/sglang-ddtree
COPY requirements requirements
COPY scripts/cpu_profile scripts/cpu_profile
COPY scripts/container/install.sh scripts/container/system.sh scripts/container/
RUN scripts/container/system.sh build "$PROFILE" \
    && scripts/container/install.sh packages "$PROFILE" "$RELEASE"
COPY upstream.toml ./
COPY patches patches
COPY models/tiny models/tiny
COPY scripts scripts
ARG SERIES_ID=
RUN scripts/container/install.sh series "$PROFILE" "$RELEASE" "$SERIES_ID"

# hadolint ignore=DL3006
FROM ${BASE_IMAGE}
ARG PROFILE=cu128
COPY scripts/container/system.sh /opt/sglang-ddtree/scripts/container/
RUN /opt/sglang-ddtree/scripts/container/system.sh serve "$PROFILE"
# What changes least comes first: a new series is a new layer of 50 MB above the packages.
COPY --from=build /opt/sglang-ddtree/.venv /opt/sglang-ddtree/.venv
COPY --from=build /opt/sglang-ddtree/models/tiny /opt/sglang-ddtree/models/tiny
ARG RELEASE=0.5.11
COPY --from=build /opt/sglang-ddtree/sglang/${RELEASE}/python /opt/sglang-ddtree/sglang/${RELEASE}/python
COPY --from=build /opt/sglang-ddtree/scripts/cpu_profile /opt/sglang-ddtree/scripts/cpu_profile
COPY --from=build /opt/sglang-ddtree/scripts/container /opt/sglang-ddtree/scripts/container
COPY --from=build /opt/sglang-ddtree/series.json /opt/sglang-ddtree/series.json

# USER is for code that asks for a name: a container may run under any number (--user).
ENV DDTREE_PROFILE=${PROFILE} \
    HOME=/home/ddtree \
    PATH=/opt/sglang-ddtree/.venv/bin:${PATH} \
    PYTHONDONTWRITEBYTECODE=1 \
    PYTHONUNBUFFERED=1 \
    USER=ddtree
WORKDIR /home/ddtree
USER 10001:0
EXPOSE 30000
STOPSIGNAL SIGTERM
# Loading a large model takes minutes; the check decodes one token.
HEALTHCHECK --interval=30s --timeout=20s --start-period=15m --retries=3 \
    CMD ["/opt/sglang-ddtree/.venv/bin/python", "-m", "container.healthcheck"]
ENTRYPOINT ["/opt/sglang-ddtree/.venv/bin/python", "-m", "container.entrypoint"]
CMD []

ARG BASE_IMAGE
ARG SERIES_ID=
LABEL org.opencontainers.image.title="sglang-ddtree" \
    org.opencontainers.image.description="SGLang with DDTree speculative decoding" \
    org.opencontainers.image.licenses="Apache-2.0" \
    org.opencontainers.image.version="${RELEASE}" \
    org.opencontainers.image.base.name="${BASE_IMAGE}" \
    sglang-ddtree.profile="${PROFILE}" \
    sglang-ddtree.series="${SERIES_ID}"
