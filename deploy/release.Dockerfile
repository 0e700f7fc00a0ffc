# The image of a release: the binary comes from goreleaser, once for each platform. The Dockerfile of the repository
# builds the same from the source.
# A folder is the same on every platform, so nothing has to emulate another one.
FROM --platform=$BUILDPLATFORM debian:12-slim AS state
RUN mkdir /state

FROM gcr.io/distroless/static-debian12:nonroot
ARG TARGETPLATFORM
COPY ${TARGETPLATFORM}/kdedup /usr/local/bin/kdedup
COPY LICENSE THIRD_PARTY_NOTICES.txt /licenses/
COPY --from=state --chown=65532:65532 /state /var/lib/kdedup
WORKDIR /var/lib/kdedup
EXPOSE 9480
ENTRYPOINT ["/usr/local/bin/kdedup"]
CMD ["run", "-c", "/etc/kdedup/kdedup.yaml"]
