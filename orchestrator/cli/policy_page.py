"""Texts of `docs/policies.md` that no model holds."""

from __future__ import annotations

EXAMPLE = """\
version: 1
name: team
description: For our tasks; candidates compute for 20 s, SQL sees one database without salaries, models are local.

purposes:
  candidate:
    image: python
    limits: {cpu_seconds: 20, wall_seconds: 100, memory_bytes: 268435456}   # 256 MiB
  analysis:
    image: analysis
    mounts: [public]
  evaluator:
    image: evaluator
    mounts: [task]
    limits: {wall_seconds: 600, cpu_seconds: 300, frame_body_bytes: 33554432}
  import:
    image: base
    mounts: [target]
    limits: {wall_seconds: 1500, channel_bytes: 4294967296}
  sql:
    image: sql
    mounts: [database]
    limits: {wall_seconds: 3600, cpu_seconds: 3600, memory_bytes: 1073741824}
  derive:
    image: sql
    limits: {wall_seconds: 1500, cpu_seconds: 300, memory_bytes: 2147483648, tmpfs_bytes: 1610612736}
  tool:
    image: tool
    mounts: [database]
    limits: {pids: 32, tmpfs_bytes: 67108864, tmpfs_inodes: 256}

data:
  - databases: [hr]
    tables: [person, "order*"]
    deny: [person.salary]
    redact: ["*.email"]
    max_rows: 10000

models:
  - models: ["openai/*"]
    base_urls: ["http://127.0.0.1:*"]
    roles: [agent, generator, critic]

disclosure:
  metric_digits: 4
"""
PREAMBLE = """\
# Policies

A policy says what each kind of untrusted code may see, use and spend, which language models may be asked, and what of a
verdict they are told. It is a YAML file. `--policy` takes the name of a shipped one or the path of your own, for
instance `--policy ./team.yaml`; `evolvarium policy explain ./team.yaml` says in plain words what it grants: what each
purpose gets, which databases can be read, which models may be asked, what they see. `--purpose sql` keeps to one
purpose, `--settings` adds what exactly the engine is given.

| shipped (`policies/`) | for |
| --- | --- |
{shipped}

- **A purpose that is not named cannot run.** Formal evaluations need `candidate`, `evaluator` and `import`; experiments
  of agents `analysis`; SQL needs `sql`, `import` and, where a data rule keeps something back, `derive`; generated
  analysis tools need `tool` beside these.
- **A language model that no rule names is not asked.** The offline engine and replays of recorded runs need no rule.
  What is refused is refused before a key is read.
- **A policy stands alone.** It cannot extend or include another one: copy a shipped file and change it.
- **Only tightening is possible from outside.** A task's own `limits` count where they are lower, and `--runtime` is
  refused where it would loosen what the policy says.
- **What must never be granted has no key:** a network, capabilities, privileges, devices, host paths, the engine's
  socket, environment variables.
- **The file is read strictly.** It has at most 256 KiB of UTF-8. Unknown keys, keys that occur twice, aliases, merges
  and tags are refused, with the place and what is allowed there. Sizes are whole numbers of bytes.
- **It is on record.** Its digest goes into the record of every container and every run. A run is continued under
  another policy only with `--accept-policy-change`.

## An example

```yaml
{example}```
"""
GVISOR = """\
## gVisor

`--policy gvisor` runs everything under `runsc`: what `default` grants, with a kernel in user space between the code and
the host's. Install gVisor, add `runsc` to `runtimes` in the engine's `/etc/docker/daemon.json`, restart the engine, and
see with `evolvarium doctor --policy gvisor` what is in force.

- **`tmpfs` is accepted without proof.** The guest kernel ignores `tmpfs_inodes`. The bytes are limited, and what it
  keeps for each file counts as the container's memory, so a flood of files ends as `memory`.
- **It needs more memory**, since what the guest kernel takes counts as the container's: 8 MiB for every small process,
  16 MiB for a copy of a program that uses NumPy. A program that needs a process per instance (one that changes more
  than its own modules) may therefore end as `memory` with a hundred instances at once, although it does not under
  `runc`. A task's own `limits` hold here as well.
- **Keep `pids` or `memory_bytes` low.** Where a container meets `pids` with a hundred processes or more, gVisor can
  take a minute to end it, which counts as a failure of the sandbox. The shipped limits on memory come before that.
- **Another policy** is put under gVisor by `--runtime runsc`. It is refused unless that policy, too, has
  `accept_unproven: [tmpfs]`.
"""
POSTAMBLE = "This page is written by `python -m orchestrator.cli.policy_reference`; a test holds it to the code.\n"
