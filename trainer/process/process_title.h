// What `ps` and `top` show of this process.
#pragma once

#include <string>

namespace sailor {

// `title` in place of the command line, cut to the room that the command line took: what lies behind it, the
// environment, stays readable for those who recognise processes by it. `name` in place of the program's short
// name, at most 15 characters. Where the system does not say where the command line lies, only the short name
// changes.
void set_process_title(const std::string& title, const std::string& name);

}  // namespace sailor
