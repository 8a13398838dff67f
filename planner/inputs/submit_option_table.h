/* The --sailor-* options of sbatch, salloc and srun, as a table that the plugin, which is C, registers with
 * Slurm. submit_options.h reads their values; tests hold the table against the objectives and expenses that
 * there are. */
#pragma once

struct sailor_option {
  const char* name;     /* without the dashes */
  const char* argument; /* one word for the help; null = takes no argument */
  const char* usage;
  const char* environment; /* gives its value when the option is missing */
};

static const struct sailor_option sailor_options[] = {
    {"sailor-objective", "NAME", "[sailor] plan the job for this objective: throughput, cost or energy",
     "SAILOR_OBJECTIVE"},
    {"sailor-max-cost", "USD", "[sailor] maximum USD per iteration", "SAILOR_MAX_COST"},
    {"sailor-max-energy", "J", "[sailor] maximum J per iteration", "SAILOR_MAX_ENERGY"},
    {"sailor-min-throughput", "RATE", "[sailor] minimum iterations per second", "SAILOR_MIN_THROUGHPUT"},
    {"sailor-max-gpus", "TYPE=N,...",
     "[sailor] maximum GPUs of each type; TYPE@ZONE=N: in that zone; total=N: of all", "SAILOR_MAX_GPUS"},
    {"sailor-zones", "ZONE,...", "[sailor] use only these zones", "SAILOR_ZONES"},
    {"sailor-partitions", "NAME,...", "[sailor] use only these partitions (as -p)", "SAILOR_PARTITIONS"},
    {"sailor-dry-run", 0, "[sailor] print the candidates and the sbatch command, submit nothing",
     "SAILOR_DRY_RUN"},
    {"sailor-plan", "FILE", "[sailor] use this plan instead of searching for one", "SAILOR_PLAN"},
    {"sailor-job", "FILE", "[sailor] the job spec, when the script is not one", "SAILOR_JOB"},
    {"sailor-wait", "auto|none|TIME|plan|nodes",
     "[sailor] auto: start now or later, whichever ends first; none: now; TIME: wait at most that long; "
     "plan: only nodes that are free now; nodes: also busy nodes, queue for them",
     "SAILOR_WAIT"},
    {"sailor-deadline", "TIME",
     "[sailor] the cheapest plan that ends by then: HH:MM, YYYY-MM-DDTHH:MM, now+12h", "SAILOR_DEADLINE"},
    {"sailor-pin", 0, "[sailor] start on the planned nodes only, not on equal ones", "SAILOR_PIN"},
    {"sailor-chain", "yes|no",
     "[sailor] yes (default with checkpoints): at the time limit, submit a job that continues the run",
     "SAILOR_CHAIN"},
    {"sailor-fresh", 0, "[sailor] train from the beginning, and set earlier checkpoints aside",
     "SAILOR_FRESH"},
    {"sailor-time-limit", "SECONDS", "[sailor] time limit of the planner", "SAILOR_TIME_LIMIT"},
    {"sailor-effort", "FACTOR", "[sailor] factor on the search effort", "SAILOR_EFFORT"},
};
enum { sailor_option_count = sizeof sailor_options / sizeof sailor_options[0] };
