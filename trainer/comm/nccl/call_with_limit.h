// Runs a call that may never return on its own thread, so that the caller can give up and continue.
#pragma once

#include <chrono>
#include <functional>

namespace sailor {

// Runs `call` and waits until it has returned (true), `until` or `given_up()` (false). An abandoned call
// continues by itself, so it must own everything that it uses; its exceptions are ignored. Throws
// std::system_error when no thread can be created. Thread-safe.
bool call_with_limit(std::function<void()> call, std::chrono::steady_clock::time_point until,
                     const std::function<bool()>& given_up = {});

}  // namespace sailor
