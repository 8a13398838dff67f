#include "trainer/comm/bootstrap.h"

#include <fmt/format.h>

#include <optional>
#include <sstream>
#include <stdexcept>

#include "trainer/comm/directory_bootstrap.h"
#ifdef SAILOR_WITH_MPI
#include "trainer/comm/mpi_bootstrap.h"
#endif

namespace sailor {

BootstrapResult bootstrap(const std::string& card) {
  if (card.size() > kMaxCardBytes) throw std::logic_error("bootstrap: card larger than 1 MiB");
  if (const std::optional<Rendezvous> rendezvous = rendezvous_from_environment())
    return directory_bootstrap(*rendezvous, card);
#ifdef SAILOR_WITH_MPI
  return mpi_bootstrap(card);
#else
  throw std::runtime_error(
      "this program was built without MPI: which rank it is, of how many, and where they meet must be in "
      "SAILOR_RANK, SAILOR_RANKS and SAILOR_RENDEZVOUS (a directory)");
#endif
}

std::string to_text(const RankCard& card) {
  return fmt::format("{} {} {} {}", card.endpoint.host, card.endpoint.port,
                     card.node.empty() ? "-" : card.node, card.pid);
}

RankCard parse_rank_card(const std::string& text) {
  std::istringstream in(text);
  RankCard card;
  if (!(in >> card.endpoint.host >> card.endpoint.port >> card.node >> card.pid)) {
    throw std::runtime_error("bootstrap: a rank handed in something else than a rank card: " + text);
  }
  if (card.node == "-") card.node.clear();
  return card;
}

}  // namespace sailor
