package kafka

import (
	"context"
	"fmt"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awsconfig "github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/credentials/stscreds"
	"github.com/aws/aws-sdk-go-v2/service/sts"
	"github.com/twmb/franz-go/pkg/sasl"
	mskiam "github.com/twmb/franz-go/pkg/sasl/aws"

	"github.com/kdedup/kdedup/config"
)

const (
	awsTimeout = 10 * time.Second // to get credentials
	// awsEarly is how long before their end temporary credentials are renewed.
	awsEarly = 5 * time.Minute
)

// LoadAWS returns the credentials of the SDK's default chain, and the region that the environment
// or the profile names.
func LoadAWS(ctx context.Context) (aws.CredentialsProvider, string, error) {
	loaded, err := awsconfig.LoadDefaultConfig(ctx, awsconfig.WithCredentialsCacheOptions(
		func(o *aws.CredentialsCacheOptions) { o.ExpiryWindow = awsEarly }))
	return loaded.Credentials, loaded.Region, err
}

// managedStreaming logs in to Amazon MSK with credentials of the SDK's default chain. The SDK keeps
// them and renews them before they end.
func managedStreaming(
	ctx context.Context, section string, a config.AWS,
) (sasl.Mechanism, error) {
	early := func(o *aws.CredentialsCacheOptions) { o.ExpiryWindow = awsEarly }
	loaded, err := awsconfig.LoadDefaultConfig(ctx,
		awsconfig.WithSharedConfigProfile(a.Profile), awsconfig.WithCredentialsCacheOptions(early))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", section, err)
	}
	credentials := loaded.Credentials
	if a.RoleARN != "" {
		role := stscreds.NewAssumeRoleProvider(sts.NewFromConfig(loaded), a.RoleARN)
		credentials = aws.NewCredentialsCache(role, early)
	}
	return mskiam.ManagedStreamingIAM(func(ctx context.Context) (mskiam.Auth, error) {
		ctx, cancel := context.WithTimeout(ctx, awsTimeout)
		defer cancel()
		c, err := credentials.Retrieve(ctx)
		if err != nil {
			return mskiam.Auth{}, &loginError{section, err}
		}
		return mskiam.Auth{AccessKey: c.AccessKeyID, SecretKey: c.SecretAccessKey,
			SessionToken: c.SessionToken, UserAgent: "kdedup"}, nil
	}), nil
}
