// Command bento is Bento with the components that the benchmark needs. The whole of it builds for
// many minutes.
package main

import (
	"context"

	"github.com/warpstreamlabs/bento/public/service"

	_ "github.com/warpstreamlabs/bento/public/components/io"
	_ "github.com/warpstreamlabs/bento/public/components/kafka"
	_ "github.com/warpstreamlabs/bento/public/components/pure"
	_ "github.com/warpstreamlabs/bento/public/components/redis"
)

func main() { service.RunCLI(context.Background()) }
