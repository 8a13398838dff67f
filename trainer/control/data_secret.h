// The secret by which the ranks of a job recognise each other on the data plane, as the text that the
// controller hands to them in their environment: those that join later need the same.
#pragma once

#include <array>
#include <string>

namespace sailor {

// 32 random bytes in hexadecimal. Throws std::runtime_error.
std::string make_data_secret();
// From $SAILOR_DATA_SECRET. Throws std::runtime_error.
std::array<unsigned char, 32> data_secret_from_environment();

}  // namespace sailor
