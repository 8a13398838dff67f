#include "spank_plugin/slurm/setup_cache.h"

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <exception>
#include <filesystem>
#include <system_error>
#include <type_traits>
#include <utility>

#include "planner/spec/strict_json.h"
#include "planner/spec/text_file.h"

namespace sailor {
namespace {

// Files of another form are not read.
constexpr int kVersion = 1;

template <class T>
constexpr bool is_optional = false;
template <class T>
constexpr bool is_optional<std::optional<T>> = true;

struct Write {
  StrictJson& json;
  template <class T>
  void operator()(const char* key, const T& value) const {
    if constexpr (is_optional<T>) {
      if (value) json[key] = *value;
    } else {
      json[key] = value;
    }
  }
};

struct Read {
  const StrictJson& json;
  template <class T>
  void operator()(const char* key, T& value) const {
    if constexpr (is_optional<T>) {
      if (json.contains(key)) value = json.at(key).get<typename T::value_type>();
    } else {
      json.at(key).get_to(value);
    }
  }
};

// All that slurmctld says of it.
template <class Partition, class Visitor>
requires std::is_same_v<std::remove_const_t<Partition>, SlurmPartition>
void visit(Partition& partition, const Visitor& field) {
  field("name", partition.name);
  field("up", partition.up);
  field("is_default", partition.is_default);
  field("whole_nodes", partition.whole_nodes);
  field("root_only", partition.root_only);
  field("needs_reservation", partition.needs_reservation);
  field("allowed_accounts", partition.allowed_accounts);
  field("denied_accounts", partition.denied_accounts);
  field("allowed_qos", partition.allowed_qos);
  field("denied_qos", partition.denied_qos);
  field("max_nodes", partition.max_nodes);
  field("max_time_s", partition.max_time_s);
  field("default_time_s", partition.default_time_s);
  field("qos", partition.qos);
  field("billing_weights", partition.billing_weights);
  field("memory_per_cpu_mb", partition.memory_per_cpu_mb);
  field("memory_per_node_mb", partition.memory_per_node_mb);
  field("nodes", partition.nodes);
}

template <class Reservation, class Visitor>
requires std::is_same_v<std::remove_const_t<Reservation>, SlurmReservation>
void visit(Reservation& reservation, const Visitor& field) {
  field("name", reservation.name);
  field("start", reservation.start);
  field("end", reservation.end);
  field("nodes", reservation.nodes);
  field("partition", reservation.partition);
}

template <class Item>
StrictJson to_json(const std::vector<Item>& items) {
  StrictJson list = StrictJson::array();
  for (const Item& item : items) visit(item, Write{list.emplace_back(StrictJson::object())});
  return list;
}

template <class Item>
void from_json(const StrictJson& list, std::vector<Item>& items) {
  for (const StrictJson& one : list) visit(items.emplace_back(), Read{one});
}

// Nobody else can write or replace anything in it.
bool is_private(const std::string& directory) {
  struct stat about {};
  return lstat(directory.c_str(), &about) == 0 && S_ISDIR(about.st_mode) && about.st_uid == geteuid() &&
         (about.st_mode & 077) == 0;
}

}  // namespace

std::string SetupCache::users_directory() {
  std::error_code none;
  const std::filesystem::path temporary = std::filesystem::temp_directory_path(none);
  return none ? "" : temporary / fmt::format("sailor-{}", geteuid());
}

SetupCache::SetupCache(const std::string& cluster, std::string directory)
    : directory_(std::move(directory)), file_(directory_ + "/setup-" + cluster + ".json") {
  if (cluster.empty()) directory_.clear();
}

std::optional<ClusterSetup> SetupCache::find(int64_t now) const {
  if (directory_.empty() || !is_private(directory_)) return std::nullopt;
  try {
    const auto json = StrictJson::parse(read_text_file(file_));
    const auto read_at = json.at("read_at").get<int64_t>();
    if (json.at("version") != kVersion || read_at > now || read_at < now - kLife_s) return std::nullopt;
    ClusterSetup setup;
    from_json(json.at("partitions"), setup.partitions);
    from_json(json.at("reservations"), setup.reservations);
    json.at("leaf_switches").get_to(setup.leaf_switches);
    return setup;
  } catch (const std::exception&) {
    return std::nullopt;
  }
}

void SetupCache::keep(const ClusterSetup& setup, int64_t now) const {
  if (directory_.empty()) return;
  mkdir(directory_.c_str(), 0700);
  if (!is_private(directory_)) return;
  const StrictJson json = {{"version", kVersion},
                           {"read_at", now},
                           {"partitions", to_json(setup.partitions)},
                           {"reservations", to_json(setup.reservations)},
                           {"leaf_switches", setup.leaf_switches}};
  try {
    write_file_atomically(file_, json.dump() + "\n");
  } catch (const std::exception&) {
    // The next submission asks slurmctld again.
  }
}

}  // namespace sailor
