#include "trainer/comm/nccl/nccl_plane.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <mutex>
#include <utility>

#include "trainer/comm/nccl/call_with_limit.h"
#include "trainer/comm/nccl/nccl_communicator.h"

namespace sailor {
namespace {

using Clock = NcclMember::Clock;

// What members tell each other before they meet in NCCL. Travels as bytes.
struct Greeting {
  int32_t nccl_version = 0;
  char host[64] = "";
  NcclMember::LaneIds ids{};  // from the first member
};

std::string version_text(int version) {
  return fmt::format("{}.{}.{}", version / 10000, version / 100 % 100, version % 100);
}

}  // namespace

struct NcclFactory::Impl {
  Impl(CommFactory& factory, int gpu, CommOptions comm_options, const DeviceLibraries& device_libraries)
      : below(factory), device(gpu), options(comm_options), libraries(device_libraries) {}

  // As many as members need: NCCL keeps a thread for one until all have joined. Throws NcclError, CommError.
  NcclMember::LaneIds draw_ids(const std::string& name, std::size_t number, Clock::time_point until) {
    struct Drawn {
      NcclMember::LaneIds ids{};
      ncclResult_t result = ncclSuccess;
    };
    const auto drawn = std::make_shared<Drawn>();
    const auto draw = [drawn, number, nccl = libraries.nccl, cuda = libraries.cuda, gpu = device] {
      static_cast<void>(cuda.set_device(gpu));
      for (std::size_t i = 0; i < number && drawn->result == ncclSuccess; ++i)
        drawn->result = nccl.get_unique_id(&drawn->ids[i]);
    };
    if (!call_with_limit(draw, until, [this] { return aborted.load(); }))
      throw CommError("create", name, -1, "", aborted ? "aborted" : "ncclGetUniqueId does not return");
    check(libraries.nccl, drawn->result, "ncclGetUniqueId", nullptr);
    return drawn->ids;
  }

  // Of all members, by rank in the communicator; checked.
  std::vector<Greeting> greet(Communicator& between, const Greeting& own) {
    std::vector<Greeting> all(static_cast<std::size_t>(between.size()));
    between.all_gather(&own, all.data(), sizeof own, ElementType::u8);
    for (std::size_t peer = 0; peer < all.size(); ++peer) {
      if (all[peer].nccl_version != own.nccl_version)
        throw CommError("create", between.name(), between.ranks()[peer], all[peer].host,
                        fmt::format("has NCCL {}, and this rank has {}", version_text(all[peer].nccl_version),
                                    version_text(own.nccl_version)));
    }
    return all;
  }

  CommFactory& below;
  const int device;
  const CommOptions options;
  const DeviceLibraries libraries;
  std::atomic<bool> aborted{false};
  NcclWatch watch;
};

NcclFactory::NcclFactory(CommFactory& below, int device, CommOptions options)
    : NcclFactory(below, device, options, DeviceLibraries{nccl_library(), cuda_library()}) {}

NcclFactory::NcclFactory(CommFactory& below, int device, CommOptions options,
                         const DeviceLibraries& libraries)
    : impl_(new Impl(below, device, options, libraries)) {}

NcclFactory::~NcclFactory() = default;

int NcclFactory::rank() const {
  return impl_->below.rank();
}
int NcclFactory::size() const {
  return impl_->below.size();
}

std::unique_ptr<Communicator> NcclFactory::make(const std::string& name, const std::vector<int>& ranks,
                                                CommUse use) {
  if (impl_->aborted) throw CommError("create", name, -1, "", "aborted");
  const auto began = Clock::now();
  try {
    std::unique_ptr<Communicator> between = impl_->below.create(name, ranks);
    Greeting own;
    check(impl_->libraries.nccl, impl_->libraries.nccl.get_version(&own.nccl_version), "ncclGetVersion",
          nullptr);
    ::gethostname(own.host, sizeof own.host - 1);
    if (between->rank() == 0)
      own.ids = impl_->draw_ids(name, has_messages(use) ? 2 : 1, began + impl_->options.deadline);
    const std::vector<Greeting> all = impl_->greet(*between, own);

    use_device(impl_->libraries.cuda, impl_->device);
    NcclMember::Setup setup{.libraries = impl_->libraries,
                            .device = impl_->device,
                            .name = name,
                            .rank = between->rank(),
                            .ranks = ranks,
                            .hosts = {},
                            .use = use,
                            .deadline = impl_->options.deadline,
                            .between = std::move(between),
                            .wake_watch = [watch = &impl_->watch] { watch->wake(); }};
    for (const Greeting& member : all) setup.hosts.emplace_back(member.host);
    auto communicator = std::make_unique<NcclCommunicator>(std::move(setup), impl_->watch);
    if (impl_->aborted) communicator->abort();
    communicator->join(all.front().ids, began);
    return communicator;
  } catch (const CommError& error) {
    if (error.operation() == "create") throw;
    throw CommError("create", name, error.peer(), error.host(), error.reason());
  } catch (const std::runtime_error& error) {  // of NCCL or CUDA, before the group has met
    throw CommError("create", name, -1, "", error.what());
  }
}

void NcclFactory::abort() noexcept {
  impl_->aborted = true;
  impl_->watch.abort_all();
  impl_->below.abort();
}

}  // namespace sailor
