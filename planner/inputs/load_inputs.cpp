#include "planner/inputs/load_inputs.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <ctime>
#include <set>

#include "planner/simulator/assumptions.h"
#include "planner/simulator/cost.h"
#include "planner/spec/error.h"
#include "planner/spec/text.h"

namespace sailor {
namespace {

constexpr size_t kMostNamed = 4;        // links, in a note
constexpr double kTypicalBytes = 64e6;  // of a message between zones

// A quota is wrong, which the command line or the job spec names.
[[noreturn]] void fail_quota(const JobSpec& job, const PlanOverrides& overrides, const std::string& type,
                             const std::string& zone, const std::string& what) {
  if (overrides.max_gpus.contains(zone.empty() ? type : type + "@" + zone))
    throw InputError("max-gpus: " + what);
  throw InputError(job.where("resources.max_gpus." + type + (zone.empty() ? "" : "." + zone)),
                   "resources.max_gpus: " + what);
}

void check_types(const JobSpec& job, const PlanOverrides& overrides, const Catalog& catalog) {
  const auto check = [&](const std::string& type, const std::string& zone) {
    try {
      catalog.at(type);
    } catch (const InputError& error) {
      fail_quota(job, overrides, type, zone, error.what());
    }
  };
  for (const auto& [type, limit] : job.resources.max_gpus)
    if (type != kTotalGpus) check(type, "");
  for (const auto& [type, limits] : job.resources.max_gpus_in_zone)
    for (const auto& [zone, limit] : limits) check(type, zone);
}

void check_zones(const JobSpec& job, const PlanOverrides& overrides, const SiteConfig& site,
                 const Snapshot& snapshot) {
  std::set<std::string> known = {site.default_zone.zone};
  for (const ZoneRule& rule : site.zones) known.insert(rule.zone);
  for (const SnapshotNode& node : snapshot.nodes) known.insert(node.zone);
  for (const BusyNode& busy : snapshot.busy) known.insert(busy.node.zone);
  const std::vector<std::string> names(known.begin(), known.end());
  const auto unknown = [&](const std::string& zone) {
    return fmt::format("unknown zone {}{} (zones: {})", in_quotes(zone), did_you_mean(zone, names),
                       fmt::join(names, ", "));
  };
  for (size_t i = 0; i < job.resources.zones.size(); ++i) {
    const std::string& zone = job.resources.zones[i];
    if (known.contains(zone)) continue;
    if (!overrides.zones.empty()) throw InputError("zones: " + unknown(zone));
    throw InputError(job.where(fmt::format("resources.zones[{}]", i)), "resources.zones: " + unknown(zone));
  }
  for (const auto& [type, limits] : job.resources.max_gpus_in_zone)
    for (const auto& [zone, limit] : limits)
      if (!known.contains(zone)) fail_quota(job, overrides, type, zone, unknown(zone));
}

// The snapshot's own prices stand; the site's fill the gaps.
void fill_prices(const std::map<std::string, std::map<std::string, double>>& from,
                 std::map<std::string, std::map<std::string, double>>& to) {
  for (const auto& [name, row] : from) to[name].insert(row.begin(), row.end());
}

// Returns what is said of the free GPUs that go with them.
std::vector<std::string> drop_unknown_types(Snapshot& snapshot, const Catalog& catalog) {
  std::vector<SnapshotNode> known;
  std::map<std::string, size_t> unknown_gpus;  // free ones, by type
  for (SnapshotNode& node : snapshot.nodes) {
    if (catalog.gpu_types.contains(node.gpu_type)) {
      known.push_back(std::move(node));
    } else {
      unknown_gpus[node.gpu_type] += node.free_gpus.size();
      snapshot.not_free.push_back(
          fmt::format("{}: GPU type {} is not in {}", node.name, node.gpu_type, catalog.file));
    }
  }
  snapshot.nodes = std::move(known);
  std::erase_if(snapshot.busy,
                [&](const BusyNode& busy) { return !catalog.gpu_types.contains(busy.node.gpu_type); });
  std::vector<std::string> names;
  for (const auto& [name, type] : catalog.gpu_types) names.push_back(name);
  std::vector<std::string> notes;
  for (const auto& [type, gpus] : unknown_gpus)
    if (gpus > 0)
      notes.push_back(fmt::format("{} free GPU{} of type {} cannot be used: it is not in {}{}", gpus,
                                  gpus == 1 ? "" : "s", type, catalog.file, did_you_mean(type, names)));
  return notes;
}

// For links that are assumed. The site's zones may come into use later.
void name_regions(PlanningInputs& inputs) {
  for (ProfileSet* profiles : {&inputs.profiles, inputs.profiles.fallback.get()}) {
    if (profiles == nullptr) continue;
    NetworkProfile& network = profiles->network;
    network.set_region(inputs.site.default_zone.zone, inputs.site.default_zone.region);
    for (const ZoneRule& rule : inputs.site.zones) network.set_region(rule.zone, rule.region);
    for (const SnapshotNode& node : inputs.snapshot.nodes) network.set_region(node.zone, node.region);
    for (const BusyNode& busy : inputs.snapshot.busy) network.set_region(busy.node.zone, busy.node.region);
  }
}

// The plan rests on figures that may no longer hold; empty when they are young enough, or of no known age.
std::string stale_note(const PlanningInputs& inputs, const std::string& type) {
  const LayerProfile* profile = inputs.profiles.find(type);
  if (profile == nullptr || inputs.site.profile_max_age_days == 0) return "";
  const double days = age_days(profile->measured, utc_time(std::time(nullptr)));
  if (days <= inputs.site.profile_max_age_days) return "";
  return fmt::format("type {}: {} was measured {:.0f} days ago: measure it again with `sailor profile {}`",
                     type, profile->file, days, inputs.job.file);
}

// Which measurement is missing, when there are others.
std::string over_transport(const PlanningInputs& inputs) {
  return inputs.profiles.measured_otherwise ? fmt::format(" over {}", name_of(inputs.framework.transport))
                                            : "";
}

// Links without a measurement between GPUs of one zone that plans may use; empty if there are none.
std::string assumed_links_note(const PlanningInputs& inputs) {
  std::map<std::string, std::map<std::string, int>> nodes;  // by zone, by type
  std::set<std::string> several;                            // types with several free GPUs on a node
  for (const SnapshotNode& node : inputs.snapshot.nodes) {
    if (node.free_gpus.empty() || !inputs.profiles.usable(node.gpu_type)) continue;
    ++nodes[node.zone][node.gpu_type];
    if (node.free_gpus.size() > 1) several.insert(node.gpu_type);
  }
  std::set<std::string> assumed;
  for (const auto& [zone, types] : nodes) {
    const auto is_assumed = [&, zone = zone](const std::string& a, const std::string& b, bool same_node) {
      return inputs.profiles.network.is_assumed({a, zone, 1}, {b, zone, 1}, same_node);
    };
    for (auto a = types.begin(); a != types.end(); ++a) {
      if (several.contains(a->first) && is_assumed(a->first, a->first, true))
        assumed.insert("in nodes of " + a->first);
      for (auto b = a; b != types.end(); ++b)
        if ((a != b || a->second > 1) && is_assumed(a->first, b->first, false))
          assumed.insert(a == b ? "between nodes of " + a->first : a->first + " to " + b->first);
    }
  }
  if (assumed.empty()) return "";
  const std::vector<std::string> all(assumed.begin(), assumed.end());
  const std::vector<std::string> named(
      all.begin(), all.begin() + static_cast<ptrdiff_t>(std::min(kMostNamed, all.size())));
  return fmt::format(
      "links without a measurement{} ({}{}) are assumed as in {}; measure them with `sailor probe "
      "--on-nodes`",
      over_transport(inputs), fmt::join(named, ", "),
      all.size() > kMostNamed ? fmt::format(", {} more", all.size() - kMostNamed) : "", inputs.catalog.file);
}

// The same between zones, with what is assumed.
std::string assumed_zone_links_note(const PlanningInputs& inputs) {
  std::map<std::string, std::set<std::string>> types;  // by zone
  const std::vector<std::string>& wanted = inputs.job.resources.zones;
  for (const SnapshotNode& node : inputs.snapshot.nodes) {
    const bool usable = wanted.empty() || std::find(wanted.begin(), wanted.end(), node.zone) != wanted.end();
    if (usable && !node.free_gpus.empty() && inputs.profiles.usable(node.gpu_type))
      types[node.zone].insert(node.gpu_type);
  }
  const NetworkProfile& network = inputs.profiles.network;
  // The slowest assumed link of the two zones; nullptr where all were measured.
  const auto slowest = [&](const std::string& zone, const std::string& other) {
    const LinkCurve* slowest = nullptr;
    for (const std::string& from : types.at(zone))
      for (const std::string& to : types.at(other)) {
        const LinkEnd a{from, zone, 1}, b{to, other, 1};
        if (!network.is_assumed(a, b, false)) continue;
        const LinkCurve* curve = network.find(a, b, false);
        if (slowest == nullptr || curve->time_s(kTypicalBytes) > slowest->time_s(kTypicalBytes))
          slowest = curve;
      }
    return slowest;
  };
  std::vector<std::string> named;
  size_t more = 0;
  for (auto zone = types.begin(); zone != types.end(); ++zone)
    for (auto other = std::next(zone); other != types.end(); ++other) {
      const LinkCurve* curve = slowest(zone->first, other->first);
      if (curve == nullptr) continue;
      if (named.size() == kMostNamed) {
        ++more;
        continue;
      }
      named.push_back(fmt::format("{} to {}: {:.3g} GB/s, {:.3g} ms", zone->first, other->first,
                                  kTypicalBytes / (curve->time_s(kTypicalBytes) - curve->latency_s()) / 1e9,
                                  curve->latency_s() * 1e3));
    }
  if (named.empty()) return "";
  return fmt::format(
      "links between zones without a measurement{} are assumed as in {} ({}{}); measure them with `sailor "
      "probe --on-nodes`",
      over_transport(inputs), inputs.catalog.file, fmt::join(named, "; "),
      more > 0 ? fmt::format("; {} more", more) : "");
}

// That the matrix units of a type do not compute in any precision of the job, and in which they do; empty if
// they may.
std::string lacking_precision(const GpuType& type, const TrainingSpec& training) {
  if (!type.lacks(training.precision)) return "";
  if (training.fallback_precision && !type.lacks(*training.fallback_precision)) return "";
  std::vector<std::string> has;
  for (const PrecisionKind& kind : kPrecisions)
    if (type.flops(kind.precision)) has.push_back(kind.name);
  return fmt::format("its matrix units have no {}, only {} (training.precision)", training.precision_name(),
                     fmt::join(has, " and "));
}

// Which free GPUs make a plan one in the fallback precision; empty if none do.
std::string fallback_note(const PlanningInputs& inputs, const std::set<std::string>& types) {
  const TrainingSpec& training = inputs.job.training;
  if (!training.fallback_precision) return "";
  std::vector<std::string> lacking, unprofiled;
  for (const std::string& type : types) {
    if (inputs.profiles.layers.contains(type) || !inputs.profiles.usable(type)) continue;
    (inputs.catalog.at(type).lacks(training.precision) ? lacking : unprofiled).push_back(type);
  }
  std::vector<std::string> parts;
  const char* const first = to_string(training.precision);
  if (!lacking.empty())
    parts.push_back(fmt::format("the matrix units of {} have no {}", fmt::join(lacking, ", "), first));
  if (!unprofiled.empty())
    parts.push_back(fmt::format("{} have no profile in {}", fmt::join(unprofiled, ", "), first));
  if (parts.empty()) return "";
  return fmt::format("precision {}: {}: plans with them are {}, others {}", training.precision_name(),
                     fmt::join(parts, ", "), to_string(*training.fallback_precision), first);
}

// That plans cost less than they do, for want of a price.
std::string price_note(const PlanningInputs& inputs, const std::string& type) {
  for (const SnapshotNode& node : inputs.snapshot.nodes)
    if (node.gpu_type == type && !usd_per_gpu_hour(inputs.context(), node))
      return fmt::format("type {}: no {} is known, plans count 0 USD for its GPUs", type,
                         node.spot ? "spot_usd_per_hour" : "usd_per_hour");
  return "";
}

std::vector<std::string> notes_of(const PlanningInputs& inputs) {
  std::map<std::string, size_t> unusable;
  for (const SnapshotNode& node : inputs.snapshot.nodes) {
    if (!inputs.profiles.usable(node.gpu_type)) unusable[node.gpu_type] += node.free_gpus.size();
  }
  std::vector<std::string> notes = inputs.profiles.not_used;
  if (inputs.site.file.empty())
    notes.push_back(fmt::format(
        "there is no site config {}: GPU types as in {}, {}", site_config_path(), inputs.catalog.file,
        inputs.site.profiles.empty() ? "no profiles"
                                     : fmt::format("profiles in {}", fmt::join(inputs.site.profiles, ", "))));
  std::set<std::string> types;
  for (const SnapshotNode& node : inputs.snapshot.nodes)
    if (!node.free_gpus.empty()) types.insert(node.gpu_type);
  if (std::string note = estimates_note(inputs.profiles, inputs.job, types); !note.empty())
    notes.push_back(std::move(note));
  for (const std::string& type : types) {
    if (std::string note = stale_note(inputs, type); !note.empty()) notes.push_back(std::move(note));
  }
  for (const std::string& type : types)
    if (std::string note = price_note(inputs, type); !note.empty()) notes.push_back(std::move(note));
  for (std::string note :
       {fallback_note(inputs, types), assumed_links_note(inputs), assumed_zone_links_note(inputs)})
    if (!note.empty()) notes.push_back(std::move(note));
  for (const auto& [type, gpus] : unusable) {
    if (gpus == 0) continue;
    const std::string lacking = lacking_precision(inputs.catalog.at(type), inputs.job.training);
    notes.push_back(
        fmt::format("{} free GPU{} of type {} cannot be used: {}", gpus, gpus == 1 ? "" : "s", type,
                    lacking.empty() ? fmt::format("no profile of {}, make one with `sailor profile {}`",
                                                  inputs.job.model.name, inputs.job.file)
                                    : lacking));
  }
  return notes;
}

}  // namespace

FrameworkStyle framework_of(const JobSpec& job, const SiteConfig& site, const Catalog& catalog,
                            const std::set<std::string>& gpu_types) {
  if (!site.framework.empty()) {
    FrameworkStyle style = load_framework_style(site.framework);
    if (job.trainer.own() || style.name == job.trainer.kind) return style;
  }
  if (!job.trainer.own()) return framework_of_trainer(job);
  const bool gpus = std::none_of(gpu_types.begin(), gpu_types.end(),
                                 [&](const std::string& type) { return catalog.at(type).on_processors; });
  return own_framework(gpus ? Ranks::gpus : Ranks::processors);
}

PlanningInputs load_inputs(JobSpec job, const std::string& site_config_file, const PlanOverrides& overrides,
                           const SnapshotSource& snapshot, const std::set<std::string>& plan_types) {
  return load_inputs(std::move(job), load_site_config(site_config_file), overrides, snapshot, plan_types);
}

PlanningInputs load_inputs(JobSpec job, SiteConfig site, const PlanOverrides& overrides,
                           const SnapshotSource& snapshot, const std::set<std::string>& plan_types) {
  PlanningInputs inputs;
  inputs.job = std::move(job);
  inputs.site = std::move(site);
  inputs.catalog = load_catalog(inputs.site.catalog);
  for (const auto& [type, power] : inputs.site.power) {
    inputs.catalog.at(type);  // names a type that is not known
    inputs.catalog.gpu_types[type].power = power;
  }
  inputs.overrides = overrides;
  if (!inputs.job.objective_given && !inputs.site.default_objective.empty()) {
    inputs.job.objective = parse_objective(inputs.site.default_objective);
  }
  apply(overrides, inputs.job);
  check_types(inputs.job, overrides, inputs.catalog);
  inputs.snapshot = snapshot(inputs.site);
  check_zones(inputs.job, overrides, inputs.site, inputs.snapshot);
  fill_prices(inputs.site.usd_per_hour, inputs.snapshot.usd_per_hour);
  fill_prices(inputs.site.spot_usd_per_hour, inputs.snapshot.spot_usd_per_hour);
  if (!inputs.snapshot.usd_per_unit_hour) inputs.snapshot.usd_per_unit_hour = inputs.site.usd_per_unit_hour;
  fill_prices(inputs.site.egress_usd_per_gb, inputs.snapshot.egress_usd_per_gb);
  std::vector<std::string> unknown = drop_unknown_types(inputs.snapshot, inputs.catalog);
  std::set<std::string> types;
  for (const SnapshotNode& node : inputs.snapshot.nodes) types.insert(node.gpu_type);
  for (const BusyNode& busy : inputs.snapshot.busy) types.insert(busy.node.gpu_type);
  std::set<std::string> ranks_on = types;
  for (const std::string& type : plan_types)  // others are errors of the plan
    if (types.empty() && inputs.catalog.gpu_types.contains(type)) ranks_on.insert(type);
  inputs.framework = framework_of(inputs.job, inputs.site, inputs.catalog, ranks_on);
  for (const std::string& file : inputs.site.calibrations)
    apply(load_calibration(file), inputs.catalog, inputs.framework);
  inputs.profiles = load_profiles(inputs.site.profiles, inputs.job, inputs.catalog, inputs.framework);
  const auto usable = [&](const std::string& type) {
    return inputs.profiles.usable(type) ||
           !lacking_precision(inputs.catalog.at(type), inputs.job.training).empty();
  };
  if (!types.empty() && std::none_of(types.begin(), types.end(), usable))
    throw no_profile(inputs.site.profiles, inputs.job, inputs.catalog);
  name_regions(inputs);
  inputs.notes = notes_of(inputs);
  inputs.notes.insert(inputs.notes.end(), unknown.begin(), unknown.end());
  return inputs;
}

PlanningInputs load_inputs(const std::string& job_file, const std::string& site_config_file,
                           const PlanOverrides& overrides, const SnapshotSource& snapshot) {
  return load_inputs(load_job_spec(job_file), site_config_file, overrides, snapshot);
}

}  // namespace sailor
