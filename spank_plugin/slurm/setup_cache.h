// The cluster's setup (slurm_view.h) as the user's last submission read it, for a minute, in a private
// directory of this host: submissions one after the other ask slurmctld only for nodes and jobs. Who uses it
// asks again when Slurm does not do what follows from it. A file that is damaged, or in a directory that
// others can write to, is as good as none.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "spank_plugin/slurm/slurm_view.h"

namespace sailor {

class SetupCache {
 public:
  // `cluster`: its identity(), part of the file's name. Without it or a directory, nothing is kept.
  explicit SetupCache(const std::string& cluster, std::string directory = users_directory());

  // Times are seconds since the epoch.
  std::optional<ClusterSetup> find(int64_t now) const;
  void keep(const ClusterSetup& setup, int64_t now) const;

  static constexpr int64_t kLife_s = 60;

 private:
  // sailor-UID in $TMPDIR, else in /tmp.
  static std::string users_directory();

  std::string directory_;  // empty = none
  std::string file_;
};

}  // namespace sailor
