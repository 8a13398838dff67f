// BigScience's layout hunt for a 176B model: Megatron-DeepSpeed on nodes of eight A100, everything
// recomputed, bf16 with 32-bit gradients and ZeRO-1. Only rows that say everything a plan needs become runs.
#include "tests/convert/convert.h"
#include "tests/convert/csv.h"
#include "tests/convert/shape.h"
#include "tests/convert/uniform_plan.h"

namespace sailor::convert {
namespace {

constexpr int kSequence = 2048;
constexpr int kVocabulary = 250880;

}  // namespace

std::vector<MeasuredRun> convert_bigscience(const std::string& path) {
  Csv csv;
  load_csv(path, csv);
  std::vector<MeasuredRun> records;
  for (const CsvRow& row : csv.rows) {
    if (row.text("hw").find("A100") == std::string::npos) continue;
    const auto seconds = row.optional_number("sec_it");
    bool complete = seconds.has_value();
    for (const char* column : {"hidden", "layers", "heads", "dp", "tp", "pp", "mbs", "gbs"})
      complete = complete && row.optional_number(column).has_value();
    if (!complete) continue;
    MeasuredRun record;
    record.name = std::to_string(row.where().line);
    record.where = row.where();
    record.framework = "megatron-deepspeed";
    record.options = {{"zero1", "true"},
                      {"zero1_all_reduce", "true"},
                      {"sync_bytes", "4"},
                      {"accumulate_bytes", "6"},
                      // Mask, softmax in 32 bit and dropout as kernels of their own.
                      {"score_forward_passes", "9"},
                      {"score_backward_passes", "10"}};
    record.platform = "jean-zay";
    record.precision = Precision::bf16;
    TransformerShape& shape = record.shape;
    const int hidden = row.integer("hidden"), heads = row.integer("heads");
    // Some tables print a number of heads that cannot be; their text says "all NHEADS=64".
    shape =
        gpt_shape(row.integer("layers"), hidden, hidden % heads == 0 ? heads : 64, kSequence, kVocabulary);
    shape.tied_embeddings = true;
    UniformPlan uniform;
    uniform.model = record.model =
        row.text("size") + "/" + std::to_string(shape.hidden) + "/" + std::to_string(shape.layers);
    uniform.pp = row.integer("pp");
    uniform.dp = row.integer("dp");
    uniform.tp = row.integer("tp");
    if (shape.layers < uniform.pp) continue;
    uniform.cuts = even_cuts(shape.layers, uniform.pp);
    uniform.microbatch = row.integer("mbs");
    uniform.global_batch = row.integer("gbs");
    uniform.gpu_type = "A100-80";
    uniform.recompute = Recompute::full;
    record.plan = uniform.plan();
    record.iteration_s.push_back(*seconds);
    const std::string& memory = row.text("mem");
    if (memory.size() > 2 && memory.substr(memory.size() - 2) == "GB" && memory.size() < 6)
      record.peak_memory_bytes.push_back(std::stod(memory) * 1e9);
    records.push_back(std::move(record));
  }
  return records;
}

}  // namespace sailor::convert
