#!/usr/bin/env bash
# Builds everything with warnings as errors and runs every test through ctest.
set -euo pipefail

usage() {
  cat <<'USAGE'
usage: tests/run.sh [--build] [--long NAME] [-R PATTERN] [-j N]

  (no option)   install the test dependencies, build, run every test
  --build       only install and build; programs are in build/bin
  -R PATTERN    build, then run only the tests whose names match
  --long NAME   run a long test that is not part of the suite: asan, tsan, fuzz, equality, properties,
                transformers, tokenizers, templates, frameworks, parquet, libtorch, minimal, package, rpm, elastic, chaos,
                busy, closed_loop, cuts, mutations or roots
  -j N          compile with N jobs, and test with two more: end-to-end tests mostly wait (default: one per core)

Works from any directory. Tests of missing data sets are skipped: set SAILOR_REFERENCE to the reference
data pack to include them.
USAGE
}

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
build=$root/build
jobs=$(nproc)
action=test
pattern=
long=
while (($#)); do
  case $1 in
    --build) action=build ;;
    -R) pattern=${2:?-R needs a pattern}; shift ;;
    --long) action=long; long=${2:?--long needs a name}; shift ;;
    -j) jobs=${2:?-j needs a number}; shift ;;
    -h | --help) usage; exit 0 ;;
    *) usage >&2; exit 2 ;;
  esac
  shift
done

# The reference data pack is next to the checkout, if there is one.
if [[ -z ${SAILOR_REFERENCE:-} && -d $root/../shared/reference ]]; then
  SAILOR_REFERENCE=$(cd "$root/../shared/reference" && pwd)
fi
export SAILOR_REFERENCE=${SAILOR_REFERENCE:-}

# With ccache, the build of tests/libtorch_2_11.sh takes what does not use libtorch from this one.
export CCACHE_BASEDIR=${CCACHE_BASEDIR:-$root}

configure_and_build() {  # PRESET [ninja targets]
  local preset=$1
  shift
  cmake -S "$root" --preset "$preset" > /dev/null
  local folder=$build
  case $preset in asan | tsan | fuzz) folder=$root/build-$preset ;; esac
  echo "building ($preset, $jobs jobs) into $folder"
  cmake --build "$folder" -j "$jobs" ${1:+--target "$@"} -- --quiet -k 0
}

# What the failed tests of the last ctest run said, in a few lines each.
summarize_failures() {
  local failed=$build/Testing/Temporary/LastTestsFailed.log
  [[ -s $failed ]] || return 0
  echo
  awk -F: 'NR == FNR { failed[substr($0, index($0, ":") + 1)]; next }
    / Testing: / { name = $0; sub(/.* Testing: /, "", name); wanted = name in failed; lines = matched = 0 }
    wanted { line[++lines] = substr($0, 1, 200) }
    wanted && /NOT OK|Failure$|expected: |found: |^[-+][^-+]/ { hit[++matched] = substr($0, 1, 200) }
    wanted && /^Test time =/ {
      print "failed: " name " (" $0 ")"
      if (matched) for (i = 1; i <= matched && i <= 10; ++i) print "  " hit[i]
      else for (i = lines > 12 ? lines - 12 : 1; i < lines; ++i) print "  " line[i]
      wanted = 0
    }' "$failed" "$build/Testing/Temporary/LastTest.log"
}

# Reruns the failed tests of a ctest run if all of them depend on real time (label real_time). Fails when a test fails twice, or has no
# such label.
rerun_real_time() {
  local failed allowed
  [[ -e $build/Testing/Temporary/LastTestsFailed.log ]] || return 1
  failed=$(sed 's/^[0-9]*://' "$build/Testing/Temporary/LastTestsFailed.log" | sort)
  allowed=$(ctest --test-dir "$build" -N -L real_time | sed -n 's/^ *Test *#[0-9]*: //p' | sort)
  [[ -n $failed && -z $(comm -23 <(echo "$failed") <(echo "$allowed")) ]] || return 1
  printf '\nrun a second time, because other programs on this machine may have disturbed these tests:\n%s\n\n' "$failed"
  ctest --test-dir "$build" --output-on-failure --rerun-failed || { summarize_failures; return 1; }
}

"$root/etc/dev/install-packages.sh" --test
cd "$root"
case $action in
  long)
    case $long in
      asan | tsan)
        configure_and_build "$long" sanitized_tests
        # One thread per rank: the synchronization of OpenMP's threads is inside its library, which is not instrumented.
        # libpciaccess, which hwloc loads and unloads, leaks a kilobyte; once it is unloaded, no suppression matches it.
        export HWLOC_COMPONENTS=-pci
        export TSAN_OPTIONS=suppressions=$root/tests/tsan_suppressions.txt
        OMP_NUM_THREADS=1 OMP_THREAD_LIMIT=1 ctest --test-dir "$root/build-$long" --output-on-failure -R '^(planner|trainer|nccl|device)\.'
        ;;
      fuzz)
        # 30 CPU minutes for each of about 35 targets; SAILOR_FUZZ_MINUTES=N changes that.
        "$root/etc/dev/install-packages.sh" --fuzz
        configure_and_build fuzz fuzz_planner fuzz_data fuzz_jobs
        for program in fuzz_planner fuzz_data fuzz_jobs; do
          "$root/tests/fuzz/run.sh" "$root/build-fuzz/bin/$program" "$root/build-fuzz/fuzz"
        done
        ;;
      equality)
        configure_and_build ci equality
        for family in ${FAMILY:-$("$build/bin/equality" --families)}; do
          for dtype in fp32 fp64; do
            "$build/bin/equality" --family "$family" --seed "${SEED:-$RANDOM}" --count "${COUNT:-60}" --dtype "$dtype" \
              --backend thread
          done
          "$build/bin/equality" --family "$family" --seed "${SEED:-$RANDOM}" --count "${COUNT:-20}" --dtype bf16 --backend thread
          "$build/bin/equality" --family "$family" --seed "${SEED:-$RANDOM}" --count "${COUNT:-20}" --dtype fp16 --backend thread
          "$build/bin/equality" --family "$family" --seed "${SEED:-$RANDOM}" --count "${COUNT:-20}" --dtype fp16 --force-overflow
          "$build/bin/equality" --family "$family" --seed "${SEED:-$RANDOM}" --count "${COUNT:-20}" --dtype fp32 --backend mpi
        done
        ;;
      properties)   # five times as many random problems as in the suite
        configure_and_build ci planner_tests
        SAILOR_TEST_FACTOR=${FACTOR:-5} ctest --test-dir "$build" -j "$jobs" --output-on-failure --timeout 3600 \
          -R '^planner\.(Search|.*Search\.|.*Property|.*EnergyTest|Explanation|TimelineSchedules|Offload|.*CatalogClusters)'
        ;;
      transformers)
        configure_and_build ci model_check
        exec "$root/tests/transformers/run.sh" "$build/bin/model_check" "${SEED:-$RANDOM}"
        ;;
      tokenizers)
        configure_and_build ci sailor-tokenize
        exec "$root/tests/transformers/tokenizers.sh" "$build/bin/sailor-tokenize" "${SEED:-$RANDOM}"
        ;;
      templates)
        configure_and_build ci template_check sailor-tokenize
        exec "$root/tests/transformers/templates.sh" "$build/bin/template_check" "$build/bin/sailor-tokenize" "${SEED:-$RANDOM}"
        ;;
      frameworks)   # installs them: 1.4 GB
        configure_and_build ci
        "$root/tests/frameworks/run.sh" --install "$build/bin"
        ctest --test-dir "$build" --output-on-failure -R '^e2e\.(frameworks|torchrun)$'
        ;;
      parquet) exec "$root/tests/parquet.sh" -j "$jobs" --seed "${SEED:-$RANDOM}" ;;
      libtorch) exec "$root/tests/libtorch_2_11.sh" -j "$jobs" --all ;;
      minimal) exec "$root/tests/minimal.sh" ;;
      package)
        configure_and_build ci product
        exec "$root/tests/package_chroot.sh"
        ;;
      rpm) exec "$root/tests/rpm.sh" --with-trainer ;;
      elastic)
        configure_and_build ci
        ctest --test-dir "$build" -C long --output-on-failure -R '^e2e\.(elastic|growth|strangers|partition|requeue|returned_node|growth_requeue)$'
        ;;
      chaos)
        configure_and_build ci product replay_run
        for setting in ${SETTING:-umbrella components growth no-checkpoints}; do
          "$root/tests/chaos.sh" --setting "$setting" --seed "${SEED:-0}" --faults 200 --minutes 30
        done
        ;;
      busy)
        configure_and_build ci product busy_workload
        exec "$root/tests/busy.sh" --seed "${SEED:-1}"
        ;;
      closed_loop)   # predictions against real computation: on a machine that does nothing else
        configure_and_build ci closed_loop
        exec "$build/bin/closed_loop" --seed "${SEED:-$RANDOM}" --count "${COUNT:-8}" --emulate off
        ;;
      cuts)   # the power, in a training
        configure_and_build ci power_cut
        exec "$build/bin/power_cut" --seed "${SEED:-$RANDOM}" --count 2000 --restarts 20
        ;;
      mutations) exec "$root/tests/mutations/run.sh" -j "$jobs" ;;
      roots) for suite in bookworm trixie forky; do "$root/tests/roots.sh" "$suite" --fresh; done ;;
      *) echo "sailor: tests/run.sh: unknown long run \"$long\" (asan, tsan, fuzz, equality, properties, transformers, tokenizers, templates, frameworks, parquet, libtorch, minimal, package, rpm, elastic, chaos, busy, closed_loop, cuts, mutations, roots)" >&2; exit 2 ;;
    esac
    ;;
  build) configure_and_build ci ;;
  test)
    configure_and_build ci
    rm -f "$build/Testing/Temporary/LastTestsFailed.log"   # from an earlier run
    ctest --test-dir "$build" -j $((jobs + 2)) --output-on-failure --no-tests=error ${pattern:+-R "$pattern"} ||
      { summarize_failures; rerun_real_time; }
    ;;
esac
