#include "planner/spec/site_config.h"

#include <fmt/format.h>

#include <cstdlib>
#include <filesystem>

#include "planner/spec/error.h"
#include "planner/spec/field.h"
#include "planner/spec/job_spec.h"
#include "planner/spec/overrides.h"
#include "planner/spec/price_table.h"
#include "planner/spec/text_file.h"
#include "planner/spec/yaml_text.h"

namespace sailor {
namespace {

std::vector<std::string> read_names(const std::optional<Field>& field) {
  std::vector<std::string> names;
  if (field) {
    for (const Field& item : field->items()) names.push_back(item.name());
  }
  return names;
}

ZoneRule read_zone(const Field& field, bool with_rule) {
  MapField map(field, with_rule
                          ? std::vector<std::string>{"zone", "region", "partitions", "features", "price"}
                          : std::vector<std::string>{"zone", "region", "price"});
  ZoneRule rule;
  rule.zone = map.required("zone").name();
  rule.region = rule.zone;
  if (auto region = map.optional("region")) rule.region = region->name();
  if (auto price = map.optional("price")) rule.spot = price->choice(price_names()) == 1;
  if (!with_rule) return rule;
  rule.partitions = read_names(map.optional("partitions"));
  rule.features = read_names(map.optional("features"));
  if (rule.partitions.empty() && rule.features.empty()) {
    field.fail("this rule would match every node, give partitions or features (or use default_zone)");
  }
  return rule;
}

void read_request(const Field& field, SiteConfig& site) {
  constexpr int kMostCpus = 4096;
  MapField map(field, {"whole_nodes", "cpus_per_rank", "memory_per_rank"});
  if (auto whole = map.optional("whole_nodes")) site.whole_nodes = whole->boolean();
  if (auto cpus = map.optional("cpus_per_rank")) site.cpus_per_rank = cpus->integer<int>(1, kMostCpus);
  if (auto memory = map.optional("memory_per_rank")) site.memory_per_rank_bytes = memory->bytes();
}

std::string yaml_request(const SiteConfig& site) {
  std::string out = fmt::format("request: {{whole_nodes: {}", site.whole_nodes);
  if (site.cpus_per_rank) out += fmt::format(", cpus_per_rank: {}", *site.cpus_per_rank);
  if (site.memory_per_rank_bytes) out += fmt::format(", memory_per_rank: {}", *site.memory_per_rank_bytes);
  return out + "}\n";
}

void read_site_planner(const Field& field, SiteConfig& site) {
  MapField inner(field, {"time_limit", "effort"});
  if (auto limit = inner.optional("time_limit")) {
    site.planner_time_limit_s = limit->duration_s();
    if (!(site.planner_time_limit_s > 0)) limit->fail("must be above 0");
  }
  if (auto effort = inner.optional("effort")) {
    site.planner_effort = effort->positive();
    if (site.planner_effort > kMostEffort) effort->fail(fmt::format("must be at most {:g}", kMostEffort));
  }
}

void read_site_elastic(const Field& field, SiteConfig& site) {
  MapField inner(field, {"grow", "yield", "time_limit", "grow_partition", "grow_qos"});
  if (auto grow = inner.optional("grow")) site.jobs_may_grow = grow->boolean();
  if (auto yield = inner.optional("yield")) site.jobs_yield = yield->boolean();
  if (auto partition = inner.optional("grow_partition")) site.grow_partition = partition->name();
  if (auto qos = inner.optional("grow_qos")) site.grow_qos = qos->name();
  if (auto limit = inner.optional("time_limit")) {
    site.elastic_time_limit_s = limit->duration_s();
    if (!(site.elastic_time_limit_s > 0)) limit->fail("must be above 0");
  }
}

}  // namespace

SiteConfig parse_site_config(const std::string& yaml, const std::string& file_name) {
  Document document = parse_yaml(yaml, file_name);
  MapField map(Field(document), {"sailor_site",
                                 "catalog",
                                 "profiles",
                                 "framework",
                                 "calibrations",
                                 "profile_max_age_days",
                                 "gres",
                                 "default_zone",
                                 "zones",
                                 "umbrella_partition",
                                 "request",
                                 "usd_per_hour",
                                 "spot_usd_per_hour",
                                 "billing",
                                 "egress_usd_per_gb",
                                 "watts",
                                 "planner",
                                 "elastic",
                                 "encrypt_data",
                                 "defaults",
                                 "policy"});
  require_version(map, "sailor_site", 1);
  SiteConfig site;
  site.file = file_name;
  if (const auto catalog = map.optional("catalog"))
    site.catalog = relative_to_file(catalog->text(), file_name);
  if (auto profiles = map.optional("profiles")) {
    for (const Field& item : profiles->items())
      site.profiles.push_back(relative_to_file(item.text(), file_name));
  }
  if (auto framework = map.optional("framework"))
    site.framework = relative_to_file(framework->text(), file_name);
  if (auto calibrations = map.optional("calibrations"))
    for (const Field& item : calibrations->items())
      site.calibrations.push_back(relative_to_file(item.text(), file_name));
  if (auto age = map.optional("profile_max_age_days"))
    site.profile_max_age_days = age->integer<int>(0, 100'000);
  if (auto gres = map.optional("gres")) {
    for (const auto& [slurm_type, gpu_type] : gres->entries()) site.gres[slurm_type] = gpu_type.name();
  }
  if (auto zone = map.optional("default_zone")) site.default_zone = read_zone(*zone, false);
  if (auto zones = map.optional("zones")) {
    for (const Field& item : zones->items()) site.zones.push_back(read_zone(item, true));
  }
  if (auto umbrella = map.optional("umbrella_partition")) site.umbrella_partition = umbrella->name();
  if (auto request = map.optional("request")) read_request(*request, site);
  if (auto prices = map.optional("usd_per_hour")) site.usd_per_hour = read_price_table(*prices);
  if (auto prices = map.optional("spot_usd_per_hour")) site.spot_usd_per_hour = read_price_table(*prices);
  if (auto billing = map.optional("billing")) site.usd_per_unit_hour = read_unit_price(*billing);
  if (auto prices = map.optional("egress_usd_per_gb")) site.egress_usd_per_gb = read_price_table(*prices);
  if (auto watts = map.optional("watts"))
    for (const auto& [type, field] : watts->entries()) site.power[type] = read_power(field);
  if (const auto planner = map.optional("planner")) read_site_planner(*planner, site);
  if (const auto elastic = map.optional("elastic")) read_site_elastic(*elastic, site);
  if (const auto encrypt = map.optional("encrypt_data")) site.encrypt_data = encrypt->boolean();
  if (auto defaults = map.optional("defaults")) {
    MapField inner(*defaults, {"objective"});
    if (auto objective = inner.optional("objective")) {
      objective->choice(objective_names());
      site.default_objective = objective->text();
    }
  }
  if (const auto policy = map.optional("policy")) site.policy = read_site_policy(*policy);
  return site;
}

SiteConfig load_site_config(const std::string& path) {
  return parse_site_config(read_text_file(path), path);
}

std::string to_yaml(const SiteConfig& site) {
  const auto place = [](const ZoneRule& rule) {
    return fmt::format("zone: {}, region: {}{}", yaml_text(rule.zone), yaml_text(rule.region),
                       rule.spot ? ", price: spot" : "");
  };
  std::string out = "sailor_site: 1\n";
  if (!site.catalog.empty()) out += fmt::format("catalog: {}\n", yaml_text(site.catalog));
  out += fmt::format("profiles: {}\n", yaml_list(site.profiles));
  if (!site.calibrations.empty()) out += fmt::format("calibrations: {}\n", yaml_list(site.calibrations));
  if (!site.framework.empty()) out += fmt::format("framework: {}\n", yaml_text(site.framework));
  out += fmt::format("profile_max_age_days: {}\n", site.profile_max_age_days);
  if (!site.gres.empty()) out += "gres:\n";
  for (const auto& [slurm_type, type] : site.gres)
    out += fmt::format("  {}: {}\n", yaml_text(slurm_type), yaml_text(type));
  out += fmt::format("default_zone: {{{}}}\n", place(site.default_zone));
  if (!site.zones.empty()) out += "zones:\n";
  for (const ZoneRule& rule : site.zones) {
    out += fmt::format("  - {{{}", place(rule));
    if (!rule.partitions.empty()) out += fmt::format(", partitions: {}", yaml_list(rule.partitions));
    if (!rule.features.empty()) out += fmt::format(", features: {}", yaml_list(rule.features));
    out += "}\n";
  }
  if (!site.umbrella_partition.empty())
    out += fmt::format("umbrella_partition: {}\n", yaml_text(site.umbrella_partition));
  if (site.whole_nodes || site.cpus_per_rank || site.memory_per_rank_bytes) out += yaml_request(site);
  out += yaml_table("usd_per_hour", site.usd_per_hour);
  out += yaml_table("spot_usd_per_hour", site.spot_usd_per_hour);
  out += yaml_unit_price(site.usd_per_unit_hour);
  out += yaml_table("egress_usd_per_gb", site.egress_usd_per_gb);
  if (!site.power.empty()) out += "watts:\n";
  for (const auto& [type, power] : site.power)
    out += fmt::format("  {}: {{idle: {}, busy: {}}}\n", yaml_text(type), power.idle_watts, power.busy_watts);
  out += fmt::format("planner: {{time_limit: {}s, effort: {}}}\nelastic: {{grow: {}, time_limit: {}s",
                     site.planner_time_limit_s, site.planner_effort, site.jobs_may_grow,
                     site.elastic_time_limit_s);
  if (site.jobs_yield) out += ", yield: true";
  if (!site.grow_partition.empty()) out += ", grow_partition: " + yaml_text(site.grow_partition);
  if (!site.grow_qos.empty()) out += ", grow_qos: " + yaml_text(site.grow_qos);
  out += "}\n";
  if (site.encrypt_data) out += "encrypt_data: true\n";
  if (!site.default_objective.empty())
    out += fmt::format("defaults: {{objective: {}}}\n", yaml_text(site.default_objective));
  return out;
}

std::string site_config_path() {
  const char* path = std::getenv("SAILOR_CONFIG");
  return path != nullptr && *path != '\0' ? path : installed_site_config_path();
}

std::string installed_site_config_path() {
  return "/etc/sailor/sailor.yaml";
}

SiteConfig load_site_under(const std::string& administrators, const std::string& file) {
  std::error_code error;
  if (administrators == file || !std::filesystem::exists(administrators, error))
    return load_site_config(file);
  SiteConfig site = load_site_config(administrators);
  const SiteConfig own = load_site_config(file);
  if (!site.policy) return own;
  site.profiles.insert(site.profiles.begin(), own.profiles.begin(), own.profiles.end());
  site.calibrations.insert(site.calibrations.end(), own.calibrations.begin(), own.calibrations.end());
  return site;
}

}  // namespace sailor
