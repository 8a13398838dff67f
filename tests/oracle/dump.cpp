#include "tests/oracle/dump.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "planner/plan/plan_json.h"
#include "planner/profile/layer_profile.h"
#include "planner/spec/text_file.h"
#include "tests/oracle/product.h"

namespace sailor::oracle {
namespace {

using Json = nlohmann::ordered_json;

void write(const std::filesystem::path& path, const std::string& text) {
  std::filesystem::create_directories(path.parent_path());
  write_file_atomically(path.string(), text);
}

std::string job_yaml(const JobSpec& job) {
  std::string text = "#!/usr/bin/env -S sailor run\n";
  const ModelSpec& m = job.model;
  text += fmt::format(
      "model: {{name: {}, family: {}, layers: {}, hidden: {}, heads: {}, feed_forward: {}, sequence: {}, "
      "vocabulary: {}}}\n",
      m.name, m.family, m.layers, m.hidden, m.heads, m.feed_forward, m.sequence, m.vocabulary);
  text +=
      fmt::format("training: {{global_batch: {}, precision: fp32, steps: {}, optimizer: {{name: adamw}}}}\n",
                  job.training.global_batch, job.training.steps);
  text += "data: {train: none.bin}\n";
  std::vector<std::string> quotas;
  for (const auto& [type, gpus] : job.resources.max_gpus) quotas.push_back(fmt::format("{}: {}", type, gpus));
  std::vector<std::string> resources;
  if (!quotas.empty()) resources.push_back(fmt::format("max_gpus: {{{}}}", fmt::join(quotas, ", ")));
  if (!job.resources.zones.empty())
    resources.push_back(fmt::format("zones: [{}]", fmt::join(job.resources.zones, ", ")));
  if (!resources.empty()) text += fmt::format("resources: {{{}}}\n", fmt::join(resources, ", "));
  return text + "objective: throughput\n";
}

std::string catalog_yaml(const Catalog& catalog) {
  std::string text = "sailor_catalog: 1\ngpu_types:\n";
  for (const auto& [name, type] : catalog.gpu_types)
    text += fmt::format("  {}: {{memory: {}, usd_per_hour: {}}}\n", name, type.memory_bytes,
                        type.usd_per_hour.value_or(0));
  return text;
}

ProfileFile profile_file(const Problem& problem, const TypeOfGpu& type, const ModelSpec& model) {
  ProfileFile file;
  file.gpu_type = type.name;
  file.model = model;
  const std::pair<LayerKind, int> kinds[] = {
      {LayerKind::embedding, 0}, {LayerKind::block, 1}, {LayerKind::head, problem.layers - 1}};
  for (const auto& [kind, layer] : kinds) {
    for (const auto& [key, cell] : type.times) {
      const LayerTime& t = cell[layer];
      file.times.push_back({key.first, {.tp = key.second}, kind, {t.forward_s, t.backward_s, t.update_s}, 1});
    }
    for (const auto& [tp, layers] : problem.sizes) {
      LayerSizes sizes;
      sizes.parameters = layers[layer].parameters;
      sizes.output_elements = layers[layer].output_elements;
      sizes.activation_bytes = 4 * layers[layer].activation_elements;
      file.sizes.push_back({{.tp = tp}, kind, sizes});
    }
  }
  return file;
}

std::string network_json(const Problem& problem) {
  const auto end_json = [&](const End& end) {
    return Json{{"gpu_type", problem.types[end.type].name},
                {"zone", problem.zones[end.zone].name},
                {"gpus", end.gpus}};
  };
  Json links = Json::array();
  for (const auto& [ends, curve] : problem.links)
    links.push_back(
        {{"from", end_json(ends.first)}, {"to", end_json(ends.second)}, {"points", curve.points}});
  return Json{{"sailor_network_profile", 1}, {"links", links}}.dump(1) + "\n";
}

void dump_reference(const Problem& problem, const std::filesystem::path& directory) {
  Json all_times;
  for (const TypeOfGpu& type : problem.types) {
    Json times = Json::object();
    for (const auto& [key, cell] : type.times)
      for (size_t layer = 0; layer < cell.size(); ++layer)
        times[std::to_string(key.first)][std::to_string(key.second)][std::to_string(layer)] = {
            cell[layer].forward_s, cell[layer].backward_s, cell[layer].update_s};
    write(directory / "profiles/oracle" / type.name / "profile.json", times.dump(1) + "\n");
    all_times["oracle"][type.name] = times;
  }
  write(directory / "profiles/profiles_tmp.json", all_times.dump(1) + "\n");
  Json sizes;
  for (const auto& [tp, layers] : problem.sizes)
    for (size_t layer = 0; layer < layers.size(); ++layer)
      sizes["oracle"][std::to_string(tp)][std::to_string(layer)] = {
          {"params_floats", layers[layer].parameters},
          {"act_output_floats", layers[layer].output_elements},
          {"act_mem_floats", layers[layer].activation_elements}};
  write(directory / "profiles/llm_info.json", sizes.dump(1) + "\n");
  Json network;
  for (const auto& [ends, curve] : problem.links) {
    const auto& [from, to] = ends;
    network[problem.zones[from.zone].name][problem.types[from.type].name][std::to_string(from.gpus)]
           [problem.zones[to.zone].name][problem.types[to.type].name][std::to_string(to.gpus)] =
               Json::array({curve.fit, 1e9});
  }
  write(directory / "network/multizone_bandwidths_het.json", network.dump(1) + "\n");
}

}  // namespace

void dump_problem(const Problem& problem, const std::string& directory) {
  const std::filesystem::path root(directory);
  const PlannerInputs inputs = planner_inputs(problem);
  write(root / "job.yaml", job_yaml(inputs.job));
  write(root / "snapshot.yaml", to_yaml(inputs.snapshot));
  write(root / "catalog.yaml", catalog_yaml(inputs.catalog));
  if (problem.reference_files) {
    dump_reference(problem, root / "reference");
    return;
  }
  write(root / "sailor.yaml", "sailor_site: 1\ncatalog: catalog.yaml\nprofiles: [profiles]\n");
  for (const TypeOfGpu& type : problem.types)
    write(root / "profiles" / (type.name + ".json"), to_json(profile_file(problem, type, inputs.job.model)));
  write(root / "profiles/network.json", network_json(problem));
}

void dump_plans(const Problem& problem, const std::vector<Row>& rows, const std::string& directory) {
  for (const Row& row : rows) {
    if (row.failures.empty()) continue;
    const std::string name = fmt::format("{}-{}", to_string(row.objective), row.limit());
    if (row.best)
      write(std::filesystem::path(directory) / (name + "-optimum.json"),
            to_json(planner_plan(problem, *row.best)));
    if (row.found) write(std::filesystem::path(directory) / (name + "-ours.json"), to_json(*row.found));
  }
}

}  // namespace sailor::oracle
