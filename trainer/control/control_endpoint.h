// How to reach a job's controller: addresses, port and the keys of the encrypted control channel, made anew
// for every job. The controller hands it to agents and ranks through their environment, which only the job's
// owner can read.
#pragma once

#include <map>
#include <string>
#include <vector>

namespace sailor {

// A CURVE key pair, Z85 text.
struct CurveKeys {
  std::string public_key;
  std::string secret_key;
};
// Throws std::runtime_error when ZeroMQ was built without encryption.
CurveKeys make_curve_keys();

struct ControlEndpoint {
  std::vector<std::string> addresses;  // IPv4 of the controller's node, most useful first
  int port = 0;
  std::string server_public_key;  // peers check the controller by it
  CurveKeys client;               // the controller checks peers by its public half
  double lease_s = 15;

  std::map<std::string, std::string> to_environment() const;
  // Throws std::runtime_error naming the missing variable.
  static ControlEndpoint from_environment();
};

// IPv4 addresses of this machine that other nodes may reach; the loopback address only when there is no
// other.
std::vector<std::string> local_ipv4_addresses();

// A controller address that answers, and the address of this machine that reaches it.
struct ControlRoute {
  std::string controller_address;
  std::string local_address;
};
// Tries the addresses in order. Throws std::runtime_error naming all of them when none answers within
// `timeout_s`.
ControlRoute find_control_route(const ControlEndpoint& endpoint, double timeout_s);

}  // namespace sailor
