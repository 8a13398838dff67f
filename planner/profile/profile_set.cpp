#include "planner/profile/profile_set.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <set>

#include "planner/profile/adapted_profile.h"
#include "planner/profile/completed_profile.h"
#include "planner/profile/estimated_profile.h"
#include "planner/profile/profile_reader.h"
#include "planner/spec/error.h"
#include "planner/spec/model_family.h"
#include "planner/spec/text.h"
#include "planner/spec/text_file.h"

namespace sailor {
namespace {

std::vector<std::string> json_files(const std::string& directory) {
  std::error_code error;
  std::vector<std::string> files;
  for (auto it = std::filesystem::directory_iterator(directory, error);
       !error && it != std::filesystem::end(it); it.increment(error)) {
    if (it->path().extension() == ".json") files.push_back(it->path().string());
  }
  if (error) throw InputError({directory, 0}, "cannot list this directory of profiles: " + error.message());
  std::sort(files.begin(), files.end());
  return files;
}

// What the directories hold for this job: the first profile of every type, and all links.
struct Found {
  std::map<std::string, ProfileFile> by_type;
  std::map<std::string, std::vector<ProfileFile>> of_other_models;  // by type
  NetworkFile network;                                              // the links of all files
  std::vector<std::string> network_files;
  std::vector<std::string> files;  // all of them, in the order in which they were read
  std::vector<std::string> notes, not_used;
};

void read_file(const std::string& file, const JobSpec& job, Precision precision, Found& found) {
  Document document = parse_json(read_text_file(file), file);
  if (document.root.find("sailor_network_profile") != nullptr) {
    const NetworkFile network = read_network_file(document);
    found.network.links.insert(found.network.links.end(), network.links.begin(), network.links.end());
    if (found.network.file.empty()) found.network.file = file;
    found.network_files.push_back(file);
  } else if (document.root.find("sailor_layer_profile") != nullptr) {
    ProfileFile profile = read_profile_file(document);
    if (!matches(profile, job.model, precision)) {
      found.of_other_models[profile.gpu_type].push_back(std::move(profile));
    } else if (const auto [it, inserted] = found.by_type.emplace(profile.gpu_type, profile); !inserted) {
      found.notes.push_back(fmt::format("type {}: {} is used, {} is another profile of the same model",
                                        profile.gpu_type, it->second.file, file));
    }
  } else {
    throw InputError({file, document.root.line},
                     "neither a layer profile nor a network profile (no key \"sailor_layer_profile\" or "
                     "\"sailor_network_profile\"), move it out of the directory of profiles");
  }
  found.files.push_back(file);
}

// A broken file is an error for the user who owns it. What others have left in a shared directory is not this
// user's to repair, and planning goes on without it.
Found read_directories(const std::vector<std::string>& directories, const JobSpec& job, Precision precision) {
  Found found;
  for (const std::string& directory : directories) {
    for (const std::string& file : json_files(directory)) {
      struct stat status {};
      const bool of_others = stat(file.c_str(), &status) == 0 && status.st_uid != geteuid();
      try {
        if (of_others && !S_ISREG(status.st_mode)) throw InputError({file, 0}, "is not a regular file");
        if (of_others && (status.st_mode & S_IWOTH))
          throw InputError({file, 0}, "every user can change this profile (chmod o-w)");
        read_file(file, job, precision, found);
      } catch (const InputError& broken) {
        if (!of_others) throw;
        found.not_used.push_back(
            fmt::format("a profile of user {} is not used: {}", status.st_uid, broken.what()));
      }
    }
  }
  return found;
}

// An emulated type is its base type with all times stretched; what does not wait (overheads) stays.
LayerProfile emulated(LayerProfile profile, const std::string& gpu_type, double slowdown) {
  profile.gpu_type = gpu_type;
  for (auto& [key, cell] : profile.cells) {
    for (LayerTimes& times : cell)
      for (double LayerTimes::*time_s : kMeasuredTimes) times.*time_s *= slowdown;
  }
  return profile;
}

// What nodes of the types usually have; the worse of unlike ones.
void assume_nodes(const Catalog& catalog, NetworkProfile& links) {
  using Scope = NetworkProfile::Scope;
  for (auto a = catalog.gpu_types.begin(); a != catalog.gpu_types.end(); ++a) {
    const TypicalNode& node = a->second.node;
    if (node.link_bytes_per_s > 0)
      links.add({{a->first, "", 0},
                 {a->first, "", 0},
                 Scope::intra_node,
                 LinkCurve::from_rates(node.link_latency_s, node.link_bytes_per_s, 0)});
    if (node.cards == 0) continue;
    for (auto b = a; b != catalog.gpu_types.end(); ++b) {
      const TypicalNode& other = b->second.node;
      if (other.cards == 0) continue;
      links.add({{a->first, "", 0},
                 {b->first, "", 0},
                 Scope::inter_node,
                 LinkCurve::from_rates(
                     std::max(node.card_latency_s, other.card_latency_s),
                     std::min(node.card_bytes_per_s, other.card_bytes_per_s),
                     std::min(node.cards * node.card_bytes_per_s, other.cards * other.card_bytes_per_s))});
    }
  }
}

void assume_links(const Catalog& catalog, NetworkProfile& network) {
  using Reach = NetworkProfile::Reach;
  std::map<Reach, NetworkProfile> assumed;
  for (const AssumedLink& link : catalog.links) {
    const Reach reach = link.scope == AssumedLink::Scope::inter_zone     ? Reach::region
                        : link.scope == AssumedLink::Scope::inter_region ? Reach::world
                                                                         : Reach::zone;
    assumed[reach].add({{link.from, "", 0},
                        {link.to, "", 0},
                        link.scope == AssumedLink::Scope::intra_node ? NetworkProfile::Scope::intra_node
                                                                     : NetworkProfile::Scope::inter_node,
                        LinkCurve::from_rates(link.latency_s, link.bytes_per_s, link.node_bytes_per_s)});
  }
  assume_nodes(catalog, assumed[Reach::zone]);
  for (auto& [reach, links] : assumed) {
    links.file = catalog.file;
    network.assume(std::move(links), reach);
  }
}

// Those of `all` that are among `some`, each once.
std::vector<std::string> in_order_of(std::vector<std::string> all, const std::vector<std::string>& some) {
  std::erase_if(all, [chosen = std::set<std::string>(some.begin(), some.end())](const std::string& file) {
    return !chosen.contains(file);
  });
  return all;
}

// Stands in for a profile that is missing; false when the catalog does not say enough of the type.
bool add_estimate(const GpuType& type, const JobSpec& job, Precision precision, const Found& found,
                  const FrameworkStyle& framework, ProfileSet& set) {
  static const std::vector<ProfileFile> none;
  const auto others = found.of_other_models.find(type.name);
  const std::vector<ProfileFile>& measured = others == found.of_other_models.end() ? none : others->second;
  auto profile = estimate_profile(type, job.model, precision, measured, set.network, framework);
  if (!profile) return false;
  set.layers.emplace(type.name, std::move(*profile));
  for (const ProfileFile& other : measured) set.files.push_back(other.file);
  return true;
}

// The measured profile of a type, and what else its GPUs can do: measuring never narrows what is searched.
LayerProfile with_estimates(const GpuType& type, const ProfileFile& file, const JobSpec& job,
                            const FrameworkStyle& framework, const NetworkProfile& network) {
  LayerProfile profile = unroll(file, job.model.layers);
  EstimatedCells cells;
  for (const auto& [cell, times] : profile.cells) {
    cells.microbatches.insert(cell.first);
    cells.tps.insert(cell.second.tp);
  }
  if (const auto estimate =
          estimate_profile(type, job.model, file.precision, {file}, network, framework, cells))
    complete(profile, *estimate);
  return profile;
}

// Without GPU types that lack the precision where the job has another one for their plans.
ProfileSet load_in_precision(Precision precision, const std::vector<std::string>& directories,
                             const JobSpec& job, const Catalog& catalog, const FrameworkStyle& framework) {
  Found found = read_directories(directories, job, precision);
  ProfileSet set;
  set.network = to_profile(found.network, framework.transport);
  set.measured_otherwise =
      std::any_of(found.network.links.begin(), found.network.links.end(), [&](const auto& link) {
        return link.has_curve() && link.transport.value_or(framework.transport) != framework.transport;
      });
  assume_links(catalog, set.network);
  set.notes = std::move(found.notes);
  set.not_used = std::move(found.not_used);
  set.files = found.network_files;
  const auto left_out = [&](const GpuType& type) {
    return job.training.fallback_precision && type.lacks(precision);
  };
  for (const auto& [name, type] : catalog.gpu_types) {
    const auto it = found.by_type.find(profiled_as(name, type));
    if (it == found.by_type.end() || left_out(type)) continue;
    set.files.push_back(it->second.file);
    LayerProfile profile = with_estimates(type, it->second, job, framework, set.network);
    if (type.emulation) profile = emulated(std::move(profile), name, type.emulation->slowdown);
    set.layers.emplace(name, std::move(profile));
    set.sizes.by_shape.merge(unroll_sizes(it->second, job.model.layers).by_shape);
  }
  for (const auto& [name, type] : catalog.gpu_types) {
    if (set.layers.contains(name) || left_out(type)) continue;
    if (add_estimate(type, job, precision, found, framework, set)) continue;
    set.notes.push_back(fmt::format(
        "type {}: no profile of {} ({}) in {}{}", name, job.model.name, to_string(precision),
        fmt::join(directories, ", "),
        type.emulation ? " for the emulated type's base " + in_quotes(profiled_as(name, type)) : ""));
  }
  std::set<ReplicaShape> shapes = {ReplicaShape{}};  // for split_tokens()
  for (const auto& [name, profile] : set.layers)
    for (const ReplicaShape& shape : profile.shapes()) shapes.insert(shape);
  complete(set.sizes, job.model, precision, framework, shapes);
  if (job.training.lora) {
    for (auto& [name, profile] : set.layers) adapt(profile, job);
    adapt(set.sizes, job, precision);
  }
  set.files = in_order_of(found.files, set.files);
  return set;
}

}  // namespace

InputError no_profile(const std::vector<std::string>& directories, const JobSpec& job,
                      const Catalog& catalog) {
  if (find_family(job.model.family) == nullptr)
    return InputError(
        job.where("model.family"),
        fmt::format(
            "model.family: there is no profile of family {} in {}, and Sailor cannot measure or train it; "
            "known families are {}; without the key, model describes a decoder by its choices",
            in_quotes(job.model.family), fmt::join(directories, ", "), fmt::join(known_families(), ", ")));
  return InputError(
      job.where("model"),
      fmt::format(
          "model: no GPU type of {} has a profile of {} in {} in {}, make one with `sailor profile {}` "
          "on a node of each type",
          catalog.file, job.model.name, job.training.precision_name(), fmt::join(directories, ", "),
          job.file));
}

ProfileSet load_profiles(const std::vector<std::string>& directories, const JobSpec& job,
                         const Catalog& catalog, const FrameworkStyle& framework) {
  ProfileSet set = load_in_precision(job.training.precision, directories, job, catalog, framework);
  if (job.training.fallback_precision) {
    set.fallback = std::make_shared<ProfileSet>(
        load_in_precision(*job.training.fallback_precision, directories, job, catalog, framework));
    set.files.insert(set.files.end(), set.fallback->files.begin(), set.fallback->files.end());
    std::vector<std::string> all;
    for (const std::string& directory : directories)
      for (std::string& file : json_files(directory)) all.push_back(std::move(file));
    set.files = in_order_of(std::move(all), set.files);
  }
  if (set.layers.empty() && (!set.fallback || set.fallback->layers.empty()))
    throw no_profile(directories, job, catalog);
  return set;
}

NetworkProfile load_links(const std::vector<std::string>& directories, const Catalog& catalog,
                          Transport transport) {
  NetworkProfile links =
      to_profile(read_directories(directories, JobSpec(), Precision::fp32).network, transport);
  assume_links(catalog, links);
  return links;
}

std::string estimates_note(const ProfileSet& profiles, const JobSpec& job,
                           const std::set<std::string>& gpu_types) {
  std::map<double, std::vector<std::string>> types;  // by uncertainty
  for (const std::string& type : gpu_types) {
    double uncertainty = 0;
    for (const ProfileSet* set : {&profiles, static_cast<const ProfileSet*>(profiles.fallback.get())})
      if (const LayerProfile* profile = set ? set->find(type) : nullptr; profile && profile->is_estimated())
        uncertainty = std::max(uncertainty, profile->uncertainty);
    if (uncertainty > 0) types[uncertainty].push_back(type);
  }
  if (types.empty()) return "";
  std::vector<std::string> parts;
  for (const auto& [uncertainty, names] : types)
    parts.push_back(fmt::format("{} are estimated from the catalog{} (+-{:.0f} %)", fmt::join(names, ", "),
                                uncertainty == kUncalibrated ? "" : " and from profiles of other models",
                                100 * uncertainty));
  return fmt::format("no profile of {} ({}): layer times of {}; measure them with `sailor profile {}`",
                     job.model.name, job.training.precision_name(), fmt::join(parts, ", those of "),
                     job.file);
}

}  // namespace sailor
