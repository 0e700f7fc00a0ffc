package kafka

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/sasl"

	"github.com/kdedup/kdedup/config"
)

const testLimit = 30 * time.Second

// withoutAWS takes away what this machine knows about AWS.
func withoutAWS(t *testing.T) {
	t.Helper()
	for _, entry := range os.Environ() {
		if name, _, _ := strings.Cut(entry, "="); strings.HasPrefix(name, "AWS_") {
			t.Setenv(name, "")
			os.Unsetenv(name)
		}
	}
	none := filepath.Join(t.TempDir(), "none")
	t.Setenv("AWS_CONFIG_FILE", none)
	t.Setenv("AWS_SHARED_CREDENTIALS_FILE", none)
	t.Setenv("AWS_EC2_METADATA_DISABLED", "true")
}

func awsLogin(t *testing.T, a config.AWS) (sasl.Mechanism, error) {
	t.Helper()
	return mechanism(t.Context(), "kafka.sasl", config.SASL{Mechanism: config.SASLAWS, AWS: a},
		slog.New(slog.DiscardHandler))
}

// signedBy returns what a login sends to a broker of MSK.
func signedBy(t *testing.T, m sasl.Mechanism) map[string]string {
	t.Helper()
	first, err := login(t, m)
	if err != nil {
		t.Fatal(err)
	}
	var fields map[string]string
	if err := json.Unmarshal([]byte(first), &fields); err != nil {
		t.Fatalf("%q: %v", first, err)
	}
	return fields
}

func TestAWSCredentialsOfTheEnvironment(t *testing.T) {
	withoutAWS(t)
	t.Setenv("AWS_REGION", "eu-west-1")
	t.Setenv("AWS_ACCESS_KEY_ID", "AKIDEXAMPLE")
	t.Setenv("AWS_SECRET_ACCESS_KEY", "aws-secret")
	t.Setenv("AWS_SESSION_TOKEN", "session")
	m, err := awsLogin(t, config.AWS{})
	if err != nil {
		t.Fatal(err)
	}
	got := signedBy(t, m)
	if m.Name() != "AWS_MSK_IAM" || got["action"] != "kafka-cluster:Connect" ||
		got["host"] != "broker" || got["x-amz-security-token"] != "session" ||
		!strings.HasPrefix(got["x-amz-credential"], "AKIDEXAMPLE/") ||
		!strings.HasSuffix(got["x-amz-credential"], "/eu-west-1/kafka-cluster/aws4_request") ||
		len(got["x-amz-signature"]) != 64 {
		t.Errorf("got %v", got)
	}
	if strings.Contains(fmt.Sprint(got), "aws-secret") {
		t.Error("the secret key is sent")
	}
}

// tokenService is a stand-in for AWS STS that numbers its credentials.
func tokenService(t *testing.T, life time.Duration) (asked *atomic.Int64, forms chan url.Values) {
	t.Helper()
	asked, forms = new(atomic.Int64), make(chan url.Values, 100)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_ = r.ParseForm()
		forms <- r.Form
		action := r.Form.Get("Action")
		fmt.Fprintf(w,
			`<%[1]sResponse><%[1]sResult><Credentials><AccessKeyId>KEY%[2]d</AccessKeyId><SecretAccessKey>s</SecretAccessKey>`+
				`<SessionToken>t</SessionToken><Expiration>%[3]s</Expiration></Credentials></%[1]sResult></%[1]sResponse>`,
			action, asked.Add(1), time.Now().Add(life).UTC().Format(time.RFC3339))
	}))
	t.Cleanup(server.Close)
	t.Setenv("AWS_ENDPOINT_URL_STS", server.URL)
	t.Setenv("AWS_REGION", "eu-west-1")
	return asked, forms
}

// An EKS pod has a token in a file, which AWS exchanges for credentials that end.
func TestAWSWebIdentity(t *testing.T) {
	withoutAWS(t)
	token := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(token, []byte("web-identity"), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("AWS_WEB_IDENTITY_TOKEN_FILE", token)
	t.Setenv("AWS_ROLE_ARN", "arn:aws:iam::1:role/pod")
	asked, forms := tokenService(t, time.Hour)
	m, err := awsLogin(t, config.AWS{})
	if err != nil {
		t.Fatal(err)
	}
	for range 3 {
		if got := signedBy(t, m); !strings.HasPrefix(got["x-amz-credential"], "KEY1/") {
			t.Errorf("got %v", got)
		}
	}
	if form := <-forms; asked.Load() != 1 || form.Get("WebIdentityToken") != "web-identity" ||
		form.Get("RoleArn") != "arn:aws:iam::1:role/pod" {
		t.Errorf("asked %d times, first %v", asked.Load(), form)
	}
}

func TestAWSRoleIsRenewedBeforeItsCredentialsEnd(t *testing.T) {
	withoutAWS(t)
	t.Setenv("AWS_ACCESS_KEY_ID", "AKIDEXAMPLE")
	t.Setenv("AWS_SECRET_ACCESS_KEY", "secret")
	_, forms := tokenService(t, awsEarly-time.Second) // as good as ended
	m, err := awsLogin(t, config.AWS{RoleARN: "arn:aws:iam::2:role/kafka"})
	if err != nil {
		t.Fatal(err)
	}
	for n := 1; n <= 2; n++ {
		if got := signedBy(t, m); !strings.HasPrefix(got["x-amz-credential"],
			fmt.Sprintf("KEY%d/", n)) {
			t.Errorf("login %d: got %v", n, got)
		}
	}
	if form := <-forms; form.Get("Action") != "AssumeRole" ||
		form.Get("RoleArn") != "arn:aws:iam::2:role/kafka" {
		t.Errorf("asked for %v", form)
	}
}

func TestAWSWithoutCredentialsSaysSo(t *testing.T) {
	withoutAWS(t)
	if _, err := awsLogin(t, config.AWS{Profile: "missing"}); err == nil ||
		!strings.HasPrefix(err.Error(), "kafka.sasl.aws: ") {
		t.Errorf("a profile that is missing: %v", err)
	}
	m, err := awsLogin(t, config.AWS{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := login(t, m); err == nil || !strings.HasPrefix(err.Error(), "kafka.sasl.aws: ") ||
		strings.Contains(err.Error(), "\n") {
		t.Errorf("no credentials at all: %v", err)
	}
}
