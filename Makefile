# `make PYTHON=… up` chooses the Python that .venv is made from; `make SPARK_PORT=auto AIRFLOW_PORT=auto up` the ports.
PYTHON ?= python3.11
RUN := .venv/bin/python
BOOTSTRAP = PYTHONPATH=infra $(PYTHON) -B -m bootstrap
# Servers that live for minutes: the quick compiler halves what they cost to warm up, given room for all that it makes. Nobody
# looks at plans in a web page: to write each out at length is a tenth of planning it.
BRIEF := JDK_JAVA_OPTIONS="-XX:TieredStopAtLevel=1 -XX:ReservedCodeCacheSize=240m -Dspark.sql.ui.explainMode=simple"
KILLS ?= 100
CLICKS ?= 1000000
KIND ?= kills
MINUTES ?= 15
SEEDS ?= 1000
RUNS ?= 20
export SPARK_PORT AIRFLOW_PORT DATABASE EXECUTOR SCHEDULERS WORKERS BROKER
export GX_ANALYTICS_ENABLED := false

.PHONY: help python setup doctor lock up down status check format test s3 s3-test cluster-test celery-test compose-test kafka-test k8s chaos chain-kills stream-kills process-kills slow-disk matrix conformance simulate wheels wheels-test bench bench-quick demo demo-chain docs secrets clean

help: ## Say what can be made
	@sed -n 's/^\([a-z0-9-]*\):.*## /\1\t/p' $(MAKEFILE_LIST) | expand -t 13

python:
	@$(PYTHON) -c '' 2>/dev/null || \
	  { echo "clickjoin: $(PYTHON) does not run: install Python 3.11, or run make PYTHON=<your python3.11>" >&2; exit 1; }

setup: python ## Install everything, as locked
	@$(BOOTSTRAP) setup

doctor: python ## Check that this machine is fit
	@$(BOOTSTRAP) doctor

s3: python ## Fetch what Spark needs for a lake on S3
	@$(BOOTSTRAP) s3

lock: setup ## Resolve packages and JARs again
	@$(BOOTSTRAP) lock

up: setup ## Start Spark Connect and Airflow; DATABASE=postgres EXECUTOR=celery SCHEDULERS=2: on PostgreSQL and Celery
	@$(RUN) -m stack up

down: ## Stop them
	@test ! -x $(RUN) || $(RUN) -m stack down

status: setup ## Say what runs and where
	@$(RUN) -m stack status

check: setup ## Lint, types, layer rules and words
	.venv/bin/ruff check
	.venv/bin/ruff format --check
	.venv/bin/mypy
	.venv/bin/lint-imports --no-logo
	PYTHONPATH=infra $(RUN) -m checks.words
	PYTHONPATH=infra $(RUN) -m checks.prose
	PYTHONPATH=infra $(RUN) -m checks.texts
	PYTHONPATH=infra $(RUN) -m checks.blocks

format: setup ## Format the code
	.venv/bin/ruff check --fix-only --quiet
	.venv/bin/ruff format

test: check ## Check, then run all tests
	$(BRIEF) AIRFLOW_HOME=$(CURDIR)/.run/tests $(RUN) -m tests.suites

chaos: setup ## Kill everything at random while two replicas run: make KILLS=100 chaos (LAKE=s3 LOGS=s3 DRIVERS=2: an S3 server too; LOGS=kafka: a broker); or stop it: KIND=pauses MINUTES=15; ENGINE=both: a replica an engine
	$(BRIEF) PYTHONPATH=.:infra:spark_apps AIRFLOW_HOME=$(CURDIR)/.run/chaos $(RUN) -m tests.faults.chaos --kind $(KIND) --kills $(KILLS) --minutes $(MINUTES) $(if $(LAKE),--lake $(LAKE)) $(if $(LOGS),--logs $(LOGS)) $(if $(DRIVERS),--drivers $(DRIVERS)) $(if $(ENGINE),--engine $(ENGINE))

chain-kills: setup ## Kill the processes of two chained pipelines at random, KILLS=20 times over CLICKS=3000000, and count
	$(BRIEF) PYTHONPATH=.:infra:spark_apps $(RUN) -m tests.faults.chain --clicks $(if $(filter file,$(origin CLICKS)),3000000,$(CLICKS)) --kills $(if $(filter file,$(origin KILLS)),20,$(KILLS))

stream-kills: setup ## Kill two replicas of one stream at random, KILLS=30 times, beside IDS=100000000 ids in the registry, and count
	$(BRIEF) PYTHONPATH=.:infra:spark_apps $(RUN) -m tests.faults.one_stream --ids $(or $(IDS),100000000) --kills $(if $(filter file,$(origin KILLS)),30,$(KILLS))

process-kills: setup ## Kill two processes of per-key processing at random, KILLS=30 times, while the output grows, and compare
	$(BRIEF) PYTHONPATH=.:infra:spark_apps $(RUN) -m tests.faults.processing --kills $(if $(filter file,$(origin KILLS)),30,$(KILLS))

slow-disk: setup ## Two replicas and gc on a disk whose commits take 0.3 s, RUNS=20 times
	$(BRIEF) CLICKJOIN_RUNS=$(RUNS) PYTHONPATH=.:infra:spark_apps $(RUN) -m pytest -q tests/faults/test_slow_disk.py

simulate: setup ## Run SEEDS=1000 schedules of crashes, zombies and races on a model of Delta
	@$(RUN) -m tests.simulator --seeds 0:$(SEEDS) --jobs 2

# The files that `make test` runs some cases of, or counts in less time (see tests/sampled.py and tests/spark/count.py).
MATRIX = $(shell grep -lE 'from tests.(sampled|spark.count) import' tests/unit/test_*.py tests/spark/test_*.py tests/faults/test_*.py tests/cluster/test_*.py)
MATRIX_OF_AIRFLOW = $(shell grep -lE 'from tests.sampled import' tests/airflow/real/test_*.py)
matrix: setup ## Force every named interleaving of two writers, every crash before a start, every damage, on real Delta
	$(BRIEF) CLICKJOIN_MATRIX=all $(RUN) -m pytest -q $(MATRIX)
	$(BRIEF) CLICKJOIN_MATRIX=all AIRFLOW_HOME=$(CURDIR)/.run/tests $(RUN) -m pytest -q $(MATRIX_OF_AIRFLOW)

conformance: setup ## Hold each engine to the promise: killed on either side of every commit of every table, then counted
	$(BRIEF) CLICKJOIN_MATRIX=all $(RUN) -m pytest -q tests/conformance

# The part of the Spark and fault suites that runs with its lakes on the disk and on a real S3 server, which Go builds.
ON_BOTH := $(patsubst %,tests/spark/test_%.py,accounts engine retry rebuild gc agreement compaction verify replicas lost quality dates) \
	$(patsubst %,tests/spark/test_%,jobs.py::test_drained jobs.py::test_redriven_and_retried replay.py::test_two_replicas \
	side_outputs.py::test_only_expired_ones_are_left recover.py::test_deletions_by_hand_are_repaired \
	forget.py::test_they_leave_every_table_and_all_else_stays forget.py::test_the_bytes_go_with_gc)
FAULTS_ON_BOTH := tests/faults/test_kill.py::test_killed_at_a_step_and_again_on_replay[arrow-claimed] \
	tests/faults/test_backfill.py::test_a_rebuild_and_a_fill_on_a_server tests/faults/test_zombie.py::test_two_replicas_share_one_registry
s3-test: setup s3 ## Run all of tests/s3, and the stated part of the Spark and fault suites with its lakes on an S3 server
	$(BRIEF) CLICKJOIN_S3=all CLICKJOIN_MATRIX=all AIRFLOW_HOME=$(CURDIR)/.run/tests $(RUN) -m pytest -q tests/s3
	$(BRIEF) CLICKJOIN_MATRIX=long $(RUN) -m pytest -q --lake s3 $(ON_BOTH)
	$(BRIEF) CLICKJOIN_MATRIX=long $(RUN) -m pytest -q --lake s3 $(foreach one,$(FAULTS_ON_BOTH),'$(one)')

# A master, two workers without clickjoin or a shared disk, an S3 server: one worker is killed half-way.
cluster-test: setup s3 ## Join CLICKS=1000000 from LOGS=s3 (or local) on a cluster without a shared disk, and kill a worker half-way
	$(BRIEF) PYTHONPATH=.:infra:spark_apps $(RUN) -m tests.cluster --clicks $(CLICKS) --logs $(or $(LOGS),s3)

celery-test: setup ## Kill each part of an Airflow on PostgreSQL and Celery while its DAGs join: minutes
	$(BRIEF) $(RUN) -m pytest -q -s tests/airflow/celery

# On a Docker engine that answers, or, as root, on one of its own; base images come from a registry or are made of Debian's packages.
compose-test: setup ## Start both sets of containers on a Docker engine, join the shipped logs, kill parts: half an hour
	$(RUN) -m pytest -q -s -x tests/compose

# What takes longer than `make test` may: topics through every crash, and kills of the broker.
kafka-test: setup ## Run every test of Kafka against a real broker (CLICKJOIN_KILLS=30: so many kills of it)
	$(BRIEF) CLICKJOIN_MATRIX=all $(RUN) -m pytest -q tests/kafka

k8s: setup ## Check infra/k8s: schemas, kustomize (built by Go), and Spark's driver with executors by its Kubernetes master
	$(BRIEF) CLICKJOIN_K8S=all $(RUN) -m pytest -q tests/unit/test_k8s.py tests/unit/test_k8s_built.py tests/k8s

wheels: setup ## Build the wheels clickjoin and clickjoin-airflow into dist/
	@$(RUN) -m wheels

wheels-test: setup ## Build both, install them into an empty environment, and join through Airflow there
	$(BRIEF) CLICKJOIN_MATRIX=all $(RUN) -m pytest -q -s tests/airflow/wheels

bench: setup ## Measure it beside its peers
	@PYTHONPATH=infra:spark_apps:. $(RUN) -m benchmarks

bench-quick: setup ## The same on small inputs, in under 5 minutes
	@PYTHONPATH=infra:spark_apps:. $(RUN) -m benchmarks --quick

demo: setup ## Show it at work; KEEP=1 leaves Spark and Airflow up (with lake and logs on disk); ENGINE=arrow without Spark jobs; LAKE=s3 has both on an S3 server (built by Go), SOURCE=kafka the logs in topics
	@$(BRIEF) $(RUN) -m demo $(if $(ENGINE),--engine $(ENGINE)) $(if $(KEEP),--keep) $(if $(LAKE),--lake $(LAKE)) $(if $(SOURCE),--source $(SOURCE))

s3-server: setup s3 ## Serve FOLDER=.run/s3 as an S3 server with bucket BUCKET=lake, until Ctrl-C: to try a lake there without an account
	@PYTHONPATH=infra $(RUN) -m stack.gateway $(or $(FOLDER),.run/s3) $(or $(BUCKET),lake)

demo-chain: setup ## Show two pipelines, of which one reads the other's output: impressions, clicks, conversions
	@$(BRIEF) $(RUN) -m demo.chain

docs: python ## Build the documentation as a site that can be searched, and check its links
	@$(BOOTSTRAP) docs

secrets: python ## Make the passwords and keys of docker-compose.yml
	@$(PYTHON) infra/images/make_secrets.py

clean: down ## Remove all that was made here
	rm -rf .venv .venv-docs .jars .run
