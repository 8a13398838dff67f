// How to reach a job's controller: addresses, port and keys of the encrypted control channel. Every job has
// new keys. Agents and ranks get all but the secret one in their environment (job_secrets.h).
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
  std::vector<std::string> addresses;  // IPv4 of the controller's node, preferred first
  int port = 0;
  std::string server_public_key;  // authenticates the controller
  CurveKeys client;               // authenticates peers; the controller knows the public key
  double lease_s = 15;

  // Without the client's secret key.
  std::map<std::string, std::string> to_environment() const;
  // Throws std::runtime_error naming the missing variable.
  static ControlEndpoint from_environment(std::string client_secret_key);
};

// IPv4 addresses of this machine that other nodes may reach; the loopback address only if there is no other.
std::vector<std::string> local_ipv4_addresses();

// A controller address that answers, and the local address of the connection to it.
struct ControlRoute {
  std::string controller_address;
  std::string local_address;
};
// Tries the addresses in order. Throws std::runtime_error with all addresses if none answers within
// `timeout_s`.
ControlRoute find_control_route(const ControlEndpoint& endpoint, double timeout_s);

}  // namespace sailor
