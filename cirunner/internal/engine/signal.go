//go:build unix

package engine

import "context"

// Waits is the name that the first command of a container takes, so that no signal is sent to it: see signal.
const Waits = "cirunner-waits"

// signaling sends a signal, $1, to all processes of the container but the first, itself, the waiting command and the
// ancestors of that, which is not the first where the image, or the engine, has an init. Without one kill -1 does it.
// Else all processes are stopped meanwhile: none is started that would be missed.
const signaling = `name=` + Waits + `; { read -r name </proc/1/comm; } 2>/dev/null
if [ "$name" = ` + Waits + ` ]; then kill "$1" -1; exit 0; fi
kill -STOP -1
spared=" 1 $$ "
for p in /proc/[0-9]*; do
	{ read -r name <"$p/comm"; } 2>/dev/null && [ "$name" = ` + Waits + ` ] || continue
	p=${p#/proc/}
	while [ "$p" -gt 1 ]; do
		spared="$spared$p "
		while read -r key p && [ "$key" != PPid: ]; do :; done <"/proc/$p/status"
	done
done
for p in /proc/[0-9]*; do
	p=${p#/proc/}
	case $spared in *" $p "*) ;; *) kill "$1" "$p" ;; esac
done
kill -CONT -1
exit 0`

// signal sends a signal to all processes of the container but those that it needs to last. It does not matter if there
// are none.
func (c *Container) signal(ctx context.Context, sig string) error {
	_, err := c.ask(ctx, "exec", "--user", "0", c.Name, "sh", "-c", signaling, "kill", "-"+sig)
	return err
}

// kill kills all processes of the container but those that it needs to last. Where that cannot be done the container is
// killed: nothing goes on beside what comes next.
func (c *Container) kill(ctx context.Context) error {
	err := c.signal(ctx, "KILL")
	if err == nil {
		return nil
	}
	if running, _, unknown := c.Running(ctx); unknown == nil && !running {
		return nil // it has ended, and all that was in it
	}
	_, _ = c.ask(ctx, "kill", "--signal", "KILL", c.Name)
	return err
}
