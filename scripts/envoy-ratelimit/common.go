package common

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"google.golang.org/protobuf/proto"
)

// Ports below the ephemeral range, and different from those of Headgate's own tests.
const (
	firstPort = 30000
	portCount = 2700
)

var (
	nextPort = os.Getpid()
		// Ports of running Redis servers by the ports in the tests.
	redisPorts = map[string]string{}
)

// The address of the management server of the tests.
var (
	XdsPort    = FreePort()
	XdsAddress = fmt.Sprintf("127.0.0.1:%d", XdsPort)
)

// FreePort returns a loopback port on which nothing listens.
func FreePort() int {
	for range portCount {
		nextPort++
		port := firstPort + nextPort%portCount
		listener, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", port))
		if err == nil {
			listener.Close()
			return port
		}
	}
	panic("no free port")
}

// RedisAddress returns the address of the Redis that replaces the one at url.
func RedisAddress(url string) (string, bool) {
	port, ok := redisPorts[url[strings.LastIndexByte(url, ':')+1:]]
	return "127.0.0.1:" + port, ok
}

// WithMultiRedis calls f while these servers run on free ports.
func WithMultiRedis(t *testing.T, configs []RedisConfig, f func()) {
	t.Helper()
	for _, config := range configs {
		port := FreePort()
		args := []string{"--port", strconv.Itoa(port), "--bind", "127.0.0.1", "--save", "", "--dir", t.TempDir()}
		if config.Password != "" {
			args = append(args, "--requirepass", config.Password)
		}
		server := exec.Command("redis-server", args...)
		server.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
		if err := server.Start(); err != nil {
			t.Fatalf("redis-server does not start: %v", err)
		}
		defer server.Wait()
		defer server.Process.Kill()
		if err := WaitForTcpPort(context.Background(), port, time.Minute); err != nil {
			t.Fatalf("redis-server does not listen: %v", err)
		}
		known := strconv.Itoa(config.Port)
		redisPorts[known] = strconv.Itoa(port)
		defer delete(redisPorts, known)
	}
	f()
}

// AssertProtoEqual asserts that a response is the expected one, and records the result.
func AssertProtoEqual(assert *assert.Assertions, expected proto.Message, actual proto.Message) {
	Note(os.Getenv("HEADGATE_KIND"), proto.Equal(expected, actual))
	assertProtoEqual(assert, expected, actual)
}

// AssertResponse asserts a property of a response, and records the result.
func AssertResponse(assert *assert.Assertions, holds bool, message ...any) {
	Note(os.Getenv("HEADGATE_KIND"), holds)
	assert.True(holds, message...)
}

// Note adds a line to the report: the subject and whether it is right.
func Note(what string, right bool) {
	word := map[bool]string{true: "right", false: "wrong"}[right]
	report, err := os.OpenFile(os.Getenv("HEADGATE_REPORT"), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		panic(err)
	}
	defer report.Close()
	fmt.Fprintln(report, what, word)
}
