// The measured runs of the Sailor authors: one JSON per run, a plan of one kind of pipelines, nodes of one
// machine each; DIR/PLATFORM/[MODEL/]NODES/*.json, and beside them a second measurement of some.
#include <algorithm>
#include <filesystem>

#include "planner/spec/text_file.h"
#include "tests/convert/convert.h"
#include "tests/convert/csv.h"
#include "tests/convert/shape.h"

namespace sailor::convert {
namespace {

namespace fs = std::filesystem;

// The models' shapes; the data pack's sizes are these (its README).
struct KnownModel {
  const char* folder;
  const char* name;
  TransformerShape shape;
};

const KnownModel& model_of(const fs::path& path) {
  static const std::vector<KnownModel> models = {
      {"OPT-350", "OPT-350", gpt_shape(24, 1024, 16, 2048, 50272)},
      {"GPT-NEO", "GPT-Neo-2.7", gpt_shape(32, 2560, 20, 2048, 50304)},
  };
  for (const fs::path& part : path)
    for (const KnownModel& model : models)
      if (part == model.folder) return model;
  return models.front();  // the cluster of mixed types ran one model only
}

std::vector<PlanStage> read_stages(const Field& layers, const Field& replica_of_stage, int replica) {
  const std::vector<Field> ranges = layers.items(), stages = replica_of_stage.items();
  if (ranges.size() != stages.size()) replica_of_stage.fail("not as many stages as in layers_per_stage");
  std::vector<PlanStage> result;
  for (size_t i = 0; i < ranges.size(); ++i) {
    PlanStage stage;
    const std::vector<Field> indices = ranges[i].items();
    if (indices.empty()) ranges[i].fail("a stage without layers");
    stage.first_layer = indices.front().integer<int>(0, 1 << 20);
    stage.end_layer = indices.back().integer<int>(0, 1 << 20) + 1;
    const std::vector<Field> replicas = stages[i].items();
    const std::vector<Field> one = replicas.at(static_cast<size_t>(replica)).items();
    const std::vector<Field> place = one.at(0).items().at(0).items();
    stage.gpu_type = place.at(0).text();
    stage.zone = place.at(2).text();
    stage.shape.tp = one.at(1).integer<int>(1, 64);
    // Every replica had nodes of its own.
    stage.node = std::to_string(i) + "." + std::to_string(replica);
    for (int t = 0; t < stage.shape.tp; ++t) stage.gpus.push_back(t);
    result.push_back(std::move(stage));
  }
  return result;
}

MeasuredRun read_run(const fs::path& file, const fs::path& relative) {
  const Document document = parse_json(read_text_file(file.string()), file.string());
  const MapField map(Field(document),
                     {"zone", "pipeline_list", "mbs", "gbs", "real", "red_grads", "max_mem", "N"});
  const KnownModel& model = model_of(relative);
  MeasuredRun record;
  record.name = relative.generic_string();
  record.where = {file.string(), 0};
  record.framework = "megatron-deepspeed-fp32";
  record.platform = relative.begin()->string();
  record.precision = Precision::fp32;
  record.model = record.plan.model = model.name;
  record.shape = model.shape;
  record.plan.global_batch = map.required("gbs").integer<int64_t>(1, 1 << 30);
  record.plan.microbatch = map.required("mbs").integer<int>(1, 1 << 20);
  const std::vector<Field> lists = map.required("pipeline_list").items();
  if (lists.size() != 1) map.fail("pipeline_list: exactly one is known");
  const MapField pipeline(lists[0], {"num_stages", "layers_per_stage", "tmp_per_stage", "dp"});
  const int dp = pipeline.required("dp").items().at(0).integer<int>(1, 1 << 20);
  const std::vector<int> microbatches =
      share_microbatches(num_microbatches(record.plan.global_batch, record.plan.microbatch), dp);
  for (int d = 0; d < dp; ++d)
    record.plan.pipelines.push_back(
        {microbatches[static_cast<size_t>(d)],
         read_stages(pipeline.required("layers_per_stage"), pipeline.required("tmp_per_stage"), d)});
  record.iteration_s.push_back(map.required("real").positive());
  record.peak_memory_bytes.push_back(map.required("max_mem").positive());
  return record;
}

void add_repeats(const fs::path& file, std::vector<MeasuredRun>& records) {
  Csv csv;
  load_csv(file.string(), csv);
  for (const CsvRow& row : csv.rows)
    for (MeasuredRun& record : records) {
      if (record.name != row.text("case")) continue;
      record.iteration_s.push_back(row.number("repeat_real_s"));
      record.peak_memory_bytes.push_back(row.number("repeat_max_mem_bytes"));
    }
}

}  // namespace

std::vector<MeasuredRun> convert_sailor(const std::string& directory) {
  std::error_code error;
  std::vector<fs::path> files;
  for (auto it = fs::recursive_directory_iterator(directory, error);
       !error && it != fs::recursive_directory_iterator(); it.increment(error))
    if (it->path().extension() == ".json") files.push_back(it->path());
  if (error) throw InputError({directory, 0}, "cannot list this directory: " + error.message());
  std::sort(files.begin(), files.end());
  std::vector<MeasuredRun> records;
  for (const fs::path& file : files) records.push_back(read_run(file, fs::relative(file, directory)));
  const fs::path repeats = fs::path(directory) / "repeat.csv";
  if (fs::exists(repeats)) add_repeats(repeats, records);
  return records;
}

}  // namespace sailor::convert
