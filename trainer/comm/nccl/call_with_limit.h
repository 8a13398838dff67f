// A call that may never return, on a thread of its own: the caller gives up on it, and goes on.
#pragma once

#include <chrono>
#include <functional>

namespace sailor {

// Runs `call` and waits until it has returned (true), `until` or `given_up()` (false). A call that is left
// behind goes on by itself, so it owns whatever it uses; what it throws is swallowed. Throws
// std::system_error when there can be no thread. Thread-safe.
bool call_with_limit(std::function<void()> call, std::chrono::steady_clock::time_point until,
                     const std::function<bool()>& given_up = {});

}  // namespace sailor
