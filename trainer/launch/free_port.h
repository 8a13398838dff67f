// A port at which nothing listens.
#pragma once

#include <string>

namespace sailor {

// `port`, or the first of the ports after it at which nothing on this node listens; `port` itself where
// `address` (a name or number) is not one of this node's, or 32 ports in a row are in use. Another process
// may take it before it is used.
int free_port(const std::string& address, int port);

}  // namespace sailor
