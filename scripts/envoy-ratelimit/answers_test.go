package headgate_test

import (
	"context"
	"fmt"
	"math/rand"
	"os"
	"path/filepath"
	"testing"
	"time"

	descriptors "github.com/envoyproxy/go-control-plane/envoy/extensions/common/ratelimit/v3"
	service "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	units "github.com/envoyproxy/go-control-plane/envoy/type/v3"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/envoyproxy/ratelimit/src/service_cmd/runner"
	upstream "github.com/envoyproxy/ratelimit/src/service_cmd/upstream"
	"github.com/envoyproxy/ratelimit/src/settings"
	"github.com/envoyproxy/ratelimit/test/common"
)

const limits = `
domain: test
descriptors:
  - key: nothing
    rate_limit: {unit: day, requests_per_unit: 0}
  - key: few
    rate_limit: &few {unit: day, requests_per_unit: 5, name: few}
  - key: instead
    rate_limit: {unit: week, requests_per_unit: 7, replaces: [{name: few}, {name: free}]}
  - key: free
    rate_limit: {unlimited: true, requests_per_unit: 4, name: free}
  - key: path
    value: /v1/*
    rate_limit: {unit: month, requests_per_unit: 4}
  - key: path
    value: /shared/*
    share_threshold: true
    rate_limit: {unit: year, requests_per_unit: 30}
  - key: path
    value: /v1/one
    rate_limit: {unit: day, requests_per_unit: 2}
  - key: path
    rate_limit: {unit: day, requests_per_unit: 9}
  - key: tried
    shadow_mode: true
    rate_limit: {unit: day, requests_per_unit: 2}
  - key: outer
    descriptors:
      - key: inner
        rate_limit: *few
      - key: inner
        value: x*
        share_threshold: true
        rate_limit: {unit: day, requests_per_unit: 3}
`

// TestAnswers sends the same random requests to both services, with a fixed seed.
func TestAnswers(t *testing.T) {
	const requests, each = 2000, 40
	common.WithMultiRedis(t, []common.RedisConfig{{Port: 6383}}, func() {
		theirs, ours := both(t)
		draw := rand.New(rand.NewSource(1))
		for turn := range requests {
						// New subjects from time to time.
			request := drawn(draw, fmt.Sprint(turn/each))
			expected, err := theirs.ShouldRateLimit(context.Background(), request)
			if err != nil {
				t.Fatal(err)
			}
			got, err := ours.ShouldRateLimit(context.Background(), request)
			if err != nil {
				t.Fatal(err)
			}
			align(expected, got)
			same := proto.Equal(expected, got)
			common.Note("answer", same)
			if !same {
				t.Errorf("%v\nenvoyproxy/ratelimit: %v\nHeadgate: %v", request, expected, got)
			}
		}
	})
}

// Starts both services with the same limits.
func both(t *testing.T) (theirs, ours service.RateLimitServiceClient) {
	folder := t.TempDir()
	if err := os.WriteFile(filepath.Join(folder, "limits.yaml"), []byte(limits), 0o644); err != nil {
		t.Fatal(err)
	}
	t.Setenv("USE_STATSD", "false")
	t.Setenv("LOG_LEVEL", "ERROR")
	s := settings.NewSettings()
	s.Host, s.GrpcHost, s.DebugHost = "127.0.0.1", "127.0.0.1", "127.0.0.1"
	s.Port, s.GrpcPort, s.DebugPort = common.FreePort(), common.FreePort(), common.FreePort()
	address, _ := common.RedisAddress("localhost:6383")
	s.RedisUrl, s.RedisSocketType = address, "tcp"
		// It expects the files in a subfolder, and a root that it does not watch.
	s.RuntimePath, s.RuntimeSubdirectory, s.RuntimeAppDirectory = filepath.Dir(folder), filepath.Base(folder), "."
	s.RuntimeWatchRoot = false
	service := upstream.NewRunner(s)
	go service.Run()
	t.Cleanup(service.Stop)
	if err := common.WaitForTcpPort(context.Background(), s.GrpcPort, time.Minute); err != nil {
		t.Fatal(err)
	}
	own := settings.Settings{RuntimePath: folder, GrpcPort: common.FreePort()}
	headgate := runner.NewRunner(own)
	t.Cleanup(headgate.Stop)
	return client(t, s.GrpcPort), client(t, own.GrpcPort)
}

func drawn(draw *rand.Rand, subject string) *service.RateLimitRequest {
	request := &service.RateLimitRequest{Domain: "test", HitsAddend: uint32(draw.Intn(4))}
	for range 1 + draw.Intn(4) {
		descriptor := &descriptors.RateLimitDescriptor{Entries: entries(draw, subject)}
		switch draw.Intn(6) {
		case 0:
			descriptor.HitsAddend = wrapperspb.UInt64(1 + uint64(draw.Intn(12)))
		case 1:
						// A peek: Headgate denies one earlier if others consume from the same limit.
			descriptor.Entries = []*descriptors.RateLimitDescriptor_Entry{{Key: "nothing", Value: subject}}
			if draw.Intn(2) == 0 {
				descriptor.Entries = []*descriptors.RateLimitDescriptor_Entry{{Key: "few", Value: "untouched"}}
			}
			descriptor.HitsAddend = wrapperspb.UInt64(0)
		case 2:
			override(draw, descriptor)
		}
		request.Descriptors = append(request.Descriptors, descriptor)
	}
	return request
}

func entries(draw *rand.Rand, subject string) []*descriptors.RateLimitDescriptor_Entry {
	one := func(values ...string) string { return values[draw.Intn(len(values))] }
	switch key := one("nothing", "few", "instead", "free", "path", "tried", "outer", "unknown"); key {
	case "path":
		value := one("/v1/one", "/v1/two", "/v1/*", "/shared/a", "/shared/b", "other", "")
		return []*descriptors.RateLimitDescriptor_Entry{{Key: key, Value: value}}
	case "outer":
		inner := one("x1", "x2", "x*", "other", subject)
		return []*descriptors.RateLimitDescriptor_Entry{{Key: key, Value: subject}, {Key: "inner", Value: inner}}
	default:
		return []*descriptors.RateLimitDescriptor_Entry{{Key: key, Value: subject + one("a", "b")}}
	}
}

// Adds a limit override to the descriptor, with a value of its own, because counters are by value.
func override(draw *rand.Rand, descriptor *descriptors.RateLimitDescriptor) {
	unit := []units.RateLimitUnit{units.RateLimitUnit_DAY, units.RateLimitUnit_MONTH, units.RateLimitUnit_YEAR}[draw.Intn(3)]
	limit := &descriptors.RateLimitDescriptor_RateLimitOverride{RequestsPerUnit: uint32(draw.Intn(6)), Unit: unit}
	descriptor.Limit = limit
	descriptor.Entries[0].Value += fmt.Sprint(limit.RequestsPerUnit, limit.Unit)
}

// Resets may differ by some seconds, because the services are called one after the other.
func align(expected, got *service.RateLimitResponse) {
	for place, status := range expected.Statuses {
		theirs, ours := status.DurationUntilReset, got.Statuses[place].DurationUntilReset
		if theirs != nil && ours != nil && theirs.Seconds-ours.Seconds <= 60 && theirs.Seconds >= ours.Seconds {
			ours.Seconds = theirs.Seconds
		}
	}
}
