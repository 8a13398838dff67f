// A network profile as a file: the curves for the planner, and the measurements behind them, so that people
// see their accuracy and the next run can continue. Value type.
//
// Two quantities are measured: messages between two ends, which become the curve of a link, and collectives,
// which are kept to check predictions. Every measurement is a median with its number of samples.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "planner/profile/network_profile.h"
#include "planner/spec/transport.h"

namespace sailor {

// A measurement at one size.
struct NetworkMeasurement {
  int64_t bytes = 0;
  double seconds = 0;   // median
  int samples = 0;      // number of samples without the outliers
  double error = 0;     // half width of the 95 % confidence interval, relative to `seconds`
  int outliers = 0;     // samples above twice the median
  int pairs = 1;        // pairs of GPUs that exchange messages concurrently; 1 for collectives
  bool precise = true;  // false: time was up before `error` was small enough
};

struct NetworkFile {
  struct Link {
    LinkEnd from{.gpu_type = "", .zone = "", .gpus = 0}, to{.gpu_type = "", .zone = "", .gpus = 0};
    NetworkProfile::Scope scope = NetworkProfile::Scope::any;
    // What it was measured over; nothing: not known, and the link applies to every transport.
    std::optional<Transport> transport;
    // The curve: points, rates, or both (see network_profile.h). Without either, the link is still being
    // measured, and the planner ignores it.
    std::vector<std::pair<double, double>> points;  // bytes, seconds
    std::optional<double> latency_s;
    double bytes_per_s = 0;       // 0 = not given
    double node_bytes_per_s = 0;  // 0 = not given
    // Of a step of a collective along this link, fitted to measured ones; 0 = not given: as messages.
    double step_latency_s = 0, step_bytes_per_s = 0;
    std::string measured;  // when, where, with what
    std::vector<NetworkMeasurement> messages;

    bool has_curve() const { return !points.empty() || bytes_per_s > 0; }
    LinkCurve curve() const;  // requires has_curve()
  };
  // All `ranks` ranks on `nodes` nodes participate; `bytes` of its measurements is the whole tensor.
  struct Collective {
    std::string operation;             // all_reduce, all_gather, reduce_scatter or broadcast
    std::vector<std::string> members;  // "4 x TYPE in ZONE", one for each kind of node
    int ranks = 0;
    int nodes = 0;
    std::optional<Transport> transport;
    std::string measured;
    std::vector<NetworkMeasurement> measurements;
  };

  std::string file;  // the file that it was read from; empty = made by a program
  std::string measured;
  std::vector<Link> links;
  std::vector<Collective> collectives;

  // The entry for these ends, created if missing. The reference is valid until another entry is created.
  Link& link(const LinkEnd& from, const LinkEnd& to, NetworkProfile::Scope scope,
             std::optional<Transport> transport = {});
  Collective& collective(const std::string& operation, const std::vector<std::string>& members, int ranks,
                         int nodes, std::optional<Transport> transport = {});
};

// Throw InputError with file and line.
NetworkFile load_network_file(const std::string& path);
NetworkFile parse_network_file(const std::string& json, const std::string& file_name);
std::string to_json(const NetworkFile& network);
// Atomic: readers see the old or the new file, even after a crash. Throws std::runtime_error.
void save_network_file(const NetworkFile& network, const std::string& path);

// The links that have a curve: all, or those for ranks that communicate over `transport`, which are those
// that were measured over it, then those that do not say over what.
NetworkProfile to_profile(const NetworkFile& network);
NetworkProfile to_profile(const NetworkFile& network, Transport transport);

const char* to_string(NetworkProfile::Scope scope);  // "any", "intra_node", "inter_node"

}  // namespace sailor
