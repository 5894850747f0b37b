package main

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"
)

const (
	defaultLease  = 15 * time.Second
	defaultTenant = "local-host-name"
	defaultURL    = "sqlite:db-locks.db"
	defaultTable  = "db_locks"
)

// config is the file of settings, with the names of the original program. A setting that means
// nothing here may stand in it all the same.
type config struct {
	Tenant       string `yaml:"tenant_id"`
	DatabaseURL  string `yaml:"database_url"`
	RedisURL     string `yaml:"redis_url"`
	EtcdURL      string `yaml:"etcd_url"`
	AWSRegion    string `yaml:"aws_region"`
	Fair         bool   `yaml:"fair_semaphore"`
	MaxSize      int    `yaml:"max_semaphore_size"`
	MutexesTable string `yaml:"mutexes_table_name"` // the table of DynamoDB

	SemaphoresTable any `yaml:"semaphores_table_name"`
	HeartbeatPeriod any `yaml:"heartbeat_period_ms"`
	UseCache        any `yaml:"use_cache"`
	PoolSize        any `yaml:"database_pool_size"`
	RunMigrations   any `yaml:"run_database_migrations"`
	DDBConsistency  any `yaml:"ddb_read_consistency"`
	Retries         any `yaml:"server_error_retries_limit"`
	RetryWait       any `yaml:"wait_before_server_error_retries_ms"`

	json bool
	url  string
}

// configure puts together the file, the environment and the command line; what comes later
// wins.
func configure(l *line, env func(string) string) (config, error) {
	c := config{Tenant: defaultTenant, MaxSize: 1000}
	if l.config != "" {
		if err := c.read(l.config); err != nil {
			return c, err
		}
	}
	c.Tenant = cmp.Or(l.tenant, c.Tenant)
	c.json = l.json.value
	if l.fair.given {
		c.Fair = l.fair.value
	}
	if l.size > c.MaxSize {
		return c, usagef("a semaphore has %d permits at most, not %d", c.MaxSize, l.size)
	}
	var err error
	c.url, err = c.storeURL(l, env)
	return c, err
}

// read reads the file of settings.
func (c *config) read(path string) error {
	text, err := os.ReadFile(path)
	if err != nil {
		return fmt.Errorf("the file of settings: %w; %w", err, errUsage)
	}
	d := yaml.NewDecoder(bytes.NewReader(text))
	d.KnownFields(true)
	if err := d.Decode(c); err != nil && !errors.Is(err, io.EOF) {
		return usagef("the file of settings %s: %v", path, err)
	}
	if c.MaxSize < 1 || c.MaxSize > 1000 {
		return usagef("the file of settings %s: max_semaphore_size is from 1 to 1000", path)
	}
	return nil
}

// storeURL says which store is meant.
func (c *config) storeURL(l *line, env func(string) string) (string, error) {
	if l.url != "" {
		return l.url, nil
	}
	switch l.provider {
	case "redis":
		return serverURL("redis", "REDIS_URL", cmp.Or(env("REDIS_URL"), c.RedisURL), "redis://127.0.0.1:6379/0")
	case "etcd":
		return serverURL("etcd", "ETCD_URL", cmp.Or(env("ETCD_URL"), c.EtcdURL), "etcd://127.0.0.1:2379")
	case "ddb":
		query := url.Values{}
		if region := cmp.Or(c.AWSRegion, env("AWS_REGION"), env("AWS_DEFAULT_REGION")); region != "" {
			query.Set("region", region)
		}
		if endpoint := env("AWS_ENDPOINT_URL_DYNAMODB"); endpoint != "" {
			query.Set("endpoint", endpoint)
		}
		return "dynamodb:" + url.PathEscape(cmp.Or(c.MutexesTable, defaultTable)) + "?" + query.Encode(), nil
	}
	u := cmp.Or(env("DATABASE_URL"), c.DatabaseURL, defaultURL)
	if !strings.Contains(u, ":") { // the path of a file, as diesel has it
		u = "sqlite:" + u
	}
	return u, nil
}

// serverURL is the URL of a server for a provider, which a variable has, or its host and port.
func serverURL(provider, variable, u, example string) (string, error) {
	switch {
	case u == "":
		return "", usagef("%s needs %s in the environment, such as %s", provider, variable, example)
	case !strings.Contains(u, "://"):
		u = provider + "://" + u
	}
	return u, nil
}
