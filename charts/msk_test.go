package charts

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	kedav1alpha1 "github.com/kedacore/keda/v2/apis/keda/v1alpha1"
	corev1 "k8s.io/api/core/v1"
)

const msk = `{autoscaling: {enabled: true, authenticationRef: aws}, config: {kafka: {
  brokers: ["b-1.main.abcdef.c1.kafka.eu-west-1.amazonaws.com:9098"], tls: {enabled: true},
  sasl: {mechanism: aws-msk-iam}}, store: {type: kafka}}}`

func mskValues(t *testing.T, more string) map[string]any {
	t.Helper()
	return layOver(t, with(t, "default", msk), more)
}

// KEDA's trigger calls the login of MSK a token of OAuth.
func TestKEDALogsInToMSKByTheNameThatItKnows(t *testing.T) {
	for more, region := range map[string]string{
		"{}":                             "eu-west-1",
		"autoscaling: {awsRegion: here}": "here",
		"config: {kafka: {brokers: ['boot-a1.c2.kafka-serverless.us-east-2.amazonaws.com:9098']}}": "us-east-2",
		"config: {kafka: {brokers: ['b-1.m.a.c2.kafka.cn-north-1.amazonaws.com.cn:9098']}}":        "cn-north-1",
	} {
		r := mustRender(t, loadChart(t), mskValues(t, more))
		got := find[*kedav1alpha1.ScaledObject](r)[0].Spec.Triggers[0].Metadata
		for _, key := range []string{"bootstrapServers", "topic", "consumerGroup", "lagThreshold",
			"offsetResetPolicy"} {
			delete(got, key)
		}
		want := map[string]string{"tls": "enable", "sasl": "oauthbearer",
			"saslTokenProvider": "aws_msk_iam", "awsRegion": region}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", more, diff)
		}
	}
}

func TestMSKThatKEDACannotReachIsRefused(t *testing.T) {
	for more, want := range map[string]string{
		"config: {kafka: {brokers: ['kafka.example:9098']}}": "awsRegion must be set",
		"autoscaling: {authenticationRef: ''}":               "authenticationRef must name",
	} {
		_, err := render(loadChart(t), "shop", mskValues(t, more))
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %s", more, err, want)
		}
	}
}

// A role of IAM trusts service accounts by name. The setup runs before that of the release exists.
func TestTheSetupHasTheRoleOfItsServiceAccount(t *testing.T) {
	account := func(values string) (name string, made *corev1.ServiceAccount) {
		r := mustRender(t, loadChart(t), layOver(t, with(t, "default",
			"setup: {enabled: true}"), values))
		for _, p := range readers(r) {
			if kindOf(p.owner) == "Job" {
				name = p.template.Spec.ServiceAccountName
			}
		}
		at := slices.IndexFunc(find[*corev1.ServiceAccount](r),
			func(a *corev1.ServiceAccount) bool { return a.Name == name })
		if at >= 0 {
			made = find[*corev1.ServiceAccount](r)[at]
		}
		return name, made
	}
	const role = "eks.amazonaws.com/role-arn"
	for values, want := range map[string]string{
		"serviceAccount: {annotations: {" + role + ": run}}": "run",
		"{serviceAccount: {annotations: {" + role + ": run}}, setup: {enabled: true, " +
			"serviceAccountAnnotations: {" + role + ": setup}}}": "setup",
	} {
		name, made := account(values)
		if name != "shop-kdedup-setup" || made == nil || !isHook(made) ||
			made.Annotations[role] != want {
			t.Errorf("%s: the setup runs as %s, %+v", values, name, made)
		}
	}
	if name, made := account("serviceAccount: {create: false, name: theirs}"); name != "theirs" ||
		made != nil {
		t.Errorf("the setup runs as %s, %+v", name, made)
	}
}
