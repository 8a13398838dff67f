// The secret with which the ranks of a job authenticate each other on the data plane. The controller passes
// it in their environment as text; ranks that join later use the same secret.
#pragma once

#include <array>
#include <string>

namespace sailor {

// 32 random bytes in hexadecimal. Throws std::runtime_error.
std::string make_data_secret();
// From $SAILOR_DATA_SECRET. Throws std::runtime_error.
std::array<unsigned char, 32> data_secret_from_environment();

}  // namespace sailor
