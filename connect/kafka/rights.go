package kafka

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/kdedup/kdedup/config"
)

const rightsRemedy = "docs/security.md lists the rights and the commands that grant them"

// lacking is the error for rights that the ACLs do not give.
func lacking(resource string, operations ...kmsg.ACLOperation) error {
	names := make([]string, len(operations))
	for i, o := range operations {
		names[i] = operationNames[o]
	}
	return fmt.Errorf("%s: the Kafka ACLs do not allow %s; %s", resource, strings.Join(names, ", "),
		rightsRemedy)
}

var operationNames = map[kmsg.ACLOperation]string{
	kmsg.ACLOperationRead: "Read", kmsg.ACLOperationWrite: "Write",
	kmsg.ACLOperationCreate: "Create",
	kmsg.ACLOperationAlter:  "Alter", kmsg.ACLOperationDescribe: "Describe",
	kmsg.ACLOperationDescribeConfigs: "DescribeConfigs",
	kmsg.ACLOperationAlterConfigs:    "AlterConfigs",
}

// denied puts what is lacking in the place of an authorization error; other errors stay as they
// are.
func denied(err error, resource string, operation kmsg.ACLOperation) error {
	for _, authorization := range []error{
		kerr.TopicAuthorizationFailed, kerr.GroupAuthorizationFailed,
		kerr.TransactionalIDAuthorizationFailed, kerr.ClusterAuthorizationFailed,
	} {
		if errors.Is(err, authorization) {
			return lacking(resource, operation)
		}
	}
	return err
}

// CheckRights returns an error for each topic, group and transactional ID on which the pipeline
// lacks a right. Members are the names of the lanes. Nothing is changed: the brokers are asked what
// they allow where they can tell, and otherwise for something that they allow and refuse for
// another reason.
func CheckRights(
	ctx context.Context, clusters Clusters, t config.Topic, members []string,
) []error {
	problems, err := topicRights(ctx, clusters, t)
	if err != nil {
		return []error{err}
	}
	if err := groupRight(ctx, clusters.Input, t.ConsumerGroup); err != nil {
		problems = append(problems, err)
	}
	if clusters.SplitsGroup(t) {
		if err := groupRight(ctx, clusters.Output, t.ConsumerGroup); err != nil {
			problems = append(problems, fmt.Errorf("%s: %w", outputPlace, err))
		}
	}
	if t.Delivery != config.DeliveryExactlyOnce {
		return problems
	}
	for _, member := range members {
		if err := memberRight(ctx, clusters.OfGroup(t), member, t.ConsumerGroup); err != nil {
			problems = append(problems, err)
		}
	}
	return problems
}

// topicNeeds are the operations on a topic. A transactional lane also reads what it writes: that is
// how it finds transactions whose markers are missing.
func topicNeeds(t config.Topic, topic string) []kmsg.ACLOperation {
	if topic == t.Input {
		return []kmsg.ACLOperation{kmsg.ACLOperationRead}
	}
	needs := []kmsg.ACLOperation{kmsg.ACLOperationWrite, kmsg.ACLOperationDescribeConfigs}
	if topic == t.FenceTopic || t.Delivery == config.DeliveryExactlyOnce {
		needs = append(needs, kmsg.ACLOperationRead)
	}
	return needs
}

func topicRights(
	ctx context.Context, clusters Clusters, t config.Topic,
) (problems []error, err error) {
	topics, err := clusters.allowedOn(ctx, t, names(t))
	if err != nil {
		return nil, err
	}
	for _, topic := range topics {
		name := *topic.Topic
		if missing := notAllowed(topic, topicNeeds(t, name)); len(missing) > 0 {
			problems = append(problems,
				lacking("topic "+name+clusters.place(t, name), missing...))
		}
	}
	return problems, nil
}

// CheckRightsBeside returns an error for each topic on which the user lacks an operation.
func CheckRightsBeside(
	ctx context.Context, client *kgo.Client, names []string, needs ...kmsg.ACLOperation,
) error {
	topics, err := allowedOn(ctx, client, names)
	problems := []error{err}
	for _, topic := range topics {
		if missing := notAllowed(topic, needs); len(missing) > 0 {
			problems = append(problems, lacking("topic "+*topic.Topic, missing...))
		}
	}
	return errors.Join(problems...)
}

// checkVisible returns an error for topics of a pipeline that the brokers tell nothing about: they
// seem to be missing.
func checkVisible(ctx context.Context, clusters Clusters, t config.Topic) error {
	return clusters.each(t, names(t), func(client *kgo.Client, topics []string) error {
		return checkVisibleAt(ctx, client, topics...)
	})
}

func checkVisibleAt(ctx context.Context, client *kgo.Client, names ...string) error {
	topics, err := allowedOn(ctx, client, names)
	if err != nil {
		return err
	}
	var hidden []error
	for _, topic := range topics {
		if topic.ErrorCode == kerr.TopicAuthorizationFailed.Code {
			hidden = append(hidden, lacking("topic "+*topic.Topic, kmsg.ACLOperationDescribe))
		}
	}
	return errors.Join(hidden...)
}

// allowedOn asks what is allowed on each of the topics. All of the answers have names.
func allowedOn(
	ctx context.Context, client *kgo.Client, names []string,
) ([]kmsg.MetadataResponseTopic, error) {
	req := kmsg.NewPtrMetadataRequest()
	req.IncludeTopicAuthorizedOperations = true
	for _, name := range names {
		req.Topics = append(req.Topics, kmsg.MetadataRequestTopic{Topic: &name})
	}
	answer, err := req.RequestWith(ctx, client)
	if err != nil {
		return nil, fmt.Errorf("list topics: %w", err)
	}
	unnamed := func(topic kmsg.MetadataResponseTopic) bool { return topic.Topic == nil }
	return slices.DeleteFunc(answer.Topics, unnamed), nil
}

// notAllowed believes the answer only if it allows to describe the topic, without which there would
// be none: some brokers do not fill it in.
func notAllowed(topic kmsg.MetadataResponseTopic, needs []kmsg.ACLOperation) []kmsg.ACLOperation {
	allows := func(o kmsg.ACLOperation) bool { return topic.AuthorizedOperations&(1<<o) != 0 }
	switch {
	case topic.ErrorCode == kerr.TopicAuthorizationFailed.Code:
		return needs
	case topic.ErrorCode != 0 || topic.AuthorizedOperations == math.MinInt32 ||
		!allows(kmsg.ACLOperationDescribe):
		return nil
	}
	return slices.DeleteFunc(slices.Clone(needs), allows)
}

// groupRight asks with the heartbeat of a member that does not exist.
func groupRight(ctx context.Context, client *kgo.Client, group string) error {
	req := kmsg.NewPtrHeartbeatRequest()
	req.Group, req.MemberID = group, "kdedup-rights"
	answer, err := req.RequestWith(ctx, client)
	if err == nil {
		err = kerr.ErrorForCode(answer.ErrorCode)
	}
	if errors.Is(err, kerr.GroupAuthorizationFailed) {
		return lacking("consumer group "+group, kmsg.ACLOperationRead)
	}
	return nil
}

// memberRight asks for a transaction of nobody.
func memberRight(ctx context.Context, client *kgo.Client, member, group string) error {
	err := addOffsetsOfNobody(ctx, client, member, group)
	if errors.Is(err, kerr.TransactionalIDAuthorizationFailed) {
		return lacking("transactional ID "+member, kmsg.ACLOperationWrite)
	}
	return nil
}
