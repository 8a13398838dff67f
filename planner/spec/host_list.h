// Slurm's host lists as text: `h[1-3,7]` is h1, h2, h3, h7. Pure.
#pragma once

#include <string>
#include <vector>

namespace sailor {

// More names than that in one host list are an error, as in Slurm.
inline constexpr int kMostHosts = 65536;

// The names of `list` in its order: names separated by commas, each with any number of brackets that hold
// numbers and ranges. The digits of a range's first number are the least width: `h[01-10]` is h01 to h10. Of
// several brackets the last varies fastest. Throws InputError, without a place, on what is not a host list
// and on more than kMostHosts names; repeated names are returned as often as they are written.
std::vector<std::string> expand_host_list(const std::string& list);

}  // namespace sailor
