#!/usr/bin/env bash
# Checks the code's layout: hardware, zones and model sizes are data, dependencies point one way, the top level is fixed.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
failed=0
# none WHAT PATTERN PATH...: no source line below the paths matches.
none() {
  local what=$1 pattern=$2 found
  shift 2
  found=$(grep -rnE --include='*.cpp' --include='*.h' --include='CMakeLists.txt' -- "$pattern" "$@" || true)
  [[ -z $found ]] || { printf '%s:\n%s\n' "$what" "$found"; failed=1; }
}

none "a GPU type, zone, platform or sized model is named in the code" \
  '\b([AVHBTLP][0-9]{2,3}|GH200|RTX|Titan|Quadro|Tesla)(-[0-9]+)?\b|us-(central|west|east)|europe-west|(OPT|LLAMA|Llama|GPT-Neo)-[0-9]|[0-9]+[MB] parameters' \
  planner trainer profiler spank_plugin
none "planner includes torch, MPI, CUDA or Slurm" '#include <(torch|ATen|c10|mpi|cuda|nccl|slurm)' planner
# Only one module uses Slurm: its headers, its programs in command lines, its environment variables.
not_slurms_room=(planner trainer profiler spank_plugin/*.cpp spank_plugin/*.h spank_plugin/doctor)
slurms_programs='s(run|alloc|batch|bcast|control|cancel|queue|info|acct|acctmgr|attach|prio|stat|share|diag|trigger)'
none "Slurm's headers are included outside spank_plugin/slurm" '#include <slurm/' "${not_slurms_room[@]}"
none "a program of Slurm is started outside spank_plugin/slurm" \
  "([{,] *|push_back\()\"$slurms_programs\"|\"(exec |timeout [0-9]+ )+$slurms_programs\b|\"$slurms_programs (--?[a-z]|show )" "${not_slurms_room[@]}"
none "a variable of Slurm is named outside spank_plugin/slurm" '"_?(SLURMD?|SBATCH|SALLOC|SRUN)_' "${not_slurms_room[@]}"
none "who trains or measures depends on the plugin" '#include "spank_plugin/' planner trainer profiler
tests/room_order.sh --self-test || failed=1
tests/room_order.sh || { echo "an include goes against the order of rooms (tests/rooms.txt)"; failed=1; }
none "the emulated devices share code with the simulator" '#include "planner/simulator' trainer
none "torch/torch.h takes 14 s a file" 'torch/torch\.h' trainer profiler tests

bare=$(grep -rl --include='*.cpp' --include='*.h' 'fmt::join' planner trainer profiler spank_plugin tests | xargs grep -L 'fmt/ranges\.h' || true)
[[ -z $bare ]] || { printf 'fmt::join needs <fmt/ranges.h> since fmt 11:\n%s\n' "$bare"; failed=1; }

# Two types with the same name in one namespace are one type to the linker, which keeps only one version of their inline functions.
twice=$(grep -roE --include='*.h' '^(struct|class) [A-Za-z]+( final)?( : [^;]*)? \{' planner trainer profiler spank_plugin |
  sed -E 's/^([^:]*):(struct|class) ([A-Za-z]+).*/\3 \1/' | sort -u |
  awk '{files[$1] = files[$1] " " $2; ++n[$1]} END {for (name in n) if (n[name] > 1) print name ":" files[name]}')
[[ -z $twice ]] || { printf 'types of the same name:\n%s\n' "$twice"; failed=1; }

extra=$(ls | grep -vxE 'CMakeLists.txt|CMakePresets.json|spank_plugin|planner|trainer|profiler|etc|tests|README.md|LICENSE|CHANGELOG.md|build.*' || true)
[[ -z $extra ]] || { echo "the top level is fixed; these stand beside it: $extra"; failed=1; }
long=$(find planner trainer profiler spank_plugin tests etc -name '*.cpp' -o -name '*.h' -o -name '*.sh' | xargs wc -l | awk '$2 != "total" && $1 > 700 {print $2, $1}')
[[ -z $long ]] || { printf 'files over 700 lines:\n%s\n' "$long"; failed=1; }
# In formatted code a block ends with a brace at the indent of its first line, and everything in between is indented further.
long=$(find planner trainer profiler spank_plugin -name '*.cpp' -o -name '*.h' | xargs awk '
  FNR == 1 { split("", begin); split("", head) }
  { match($0, /^ */); indent = RLENGTH }
  indent > 4 || indent % 2 || /^ *$/ || /^ *(\/\/|#|\}|public:|private:|protected:)/ && !/^ *\}$/ { next }
  /^ *\}$/ {
    if (FNR - begin[indent] + 1 > 80 && head[indent] !~ /^ *(namespace|class|struct|union|enum|extern)/)
      print FILENAME ":" begin[indent], FNR - begin[indent] + 1
    next
  }
  { begin[indent] = FNR; head[indent] = $0 }')
[[ -z $long ]] || { printf 'functions over 80 lines:\n%s\n' "$long"; failed=1; }
if command -v clang-format > /dev/null && [[ $(clang-format --version) == *"version 14"* ]]; then
  find planner trainer profiler spank_plugin tests -name '*.cpp' -o -name '*.h' | xargs clang-format --dry-run -Werror || failed=1
fi
exit $failed
