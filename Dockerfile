# syntax=docker/dockerfile:1
# docker build --build-arg VERSION=v1.2.3 -t kdedup:v1.2.3 .

FROM golang:1.26.8 AS build
WORKDIR /src
COPY go.mod go.sum ./
RUN --mount=type=cache,target=/go/pkg/mod go mod download
COPY . .
ARG VERSION=
RUN --mount=type=cache,target=/go/pkg/mod --mount=type=cache,target=/root/.cache/go-build \
    CGO_ENABLED=0 go build -trimpath -buildvcs=false -ldflags "-s -w -X github.com/kdedup/kdedup/process/build.version=${VERSION}" -o /out/kdedup ./cmd/kdedup \
    && mkdir /out/state

# No shell, a user without rights, the usual certificate authorities.
FROM gcr.io/distroless/static-debian12:nonroot
COPY --from=build /out/kdedup /usr/local/bin/kdedup
COPY LICENSE THIRD_PARTY_NOTICES.txt /licenses/
# The embedded store's default path lies here: mount a volume on it.
COPY --from=build --chown=65532:65532 /out/state /var/lib/kdedup
WORKDIR /var/lib/kdedup
EXPOSE 9480
ENTRYPOINT ["/usr/local/bin/kdedup"]
CMD ["run", "-c", "/etc/kdedup/kdedup.yaml"]
