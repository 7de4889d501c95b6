#include "anabranch/collective/mpi.hpp"

#include <cstring>

namespace anabranch {
namespace {

using Handle = std::uintptr_t;
constexpr int tag = 0;

// Larger than MPI_Status of any implementation.
struct alignas(16) Status {
  char bytes[128];
};

class MpiTransport final : public Transport {
 public:
  explicit MpiTransport(const MpiFunctions& functions) : functions_(functions) {}

  std::string start(std::uintptr_t communicator, Transfer& transfer) override {
    const int code = call(communicator, transfer);
    return code == 0 ? std::string() : text_of(code);
  }

  std::string test(Transfer& transfer) override {
    int flag = 0;
    Status status{};
    const int code = as<int(void*, int*, void*)>(functions_.test)(&transfer.request, &flag, &status);
    if (code != 0) return text_of(code);
    if (flag != 0 && transfer.verb == Verb::receive) {
      // MPI takes a message that is shorter than its buffer.
      if (const std::int64_t count = count_of(status, transfer.type); count != transfer.count) {
        return "a message from rank " + std::to_string(transfer.peer) + " has " + std::to_string(count) +
               " bytes, and its recv " + std::to_string(transfer.count);
      }
    }
    transfer.over = flag != 0;
    return {};
  }

  void give_back(std::uintptr_t communicator) noexcept override {
    std::uint64_t handle = communicator;
    as<int(void*)>(functions_.comm_free)(&handle);
  }

 private:
  template <class F>
  static F* as(void* function) {
    return reinterpret_cast<F*>(function);
  }

  // Of a message: its type is that of bytes.
  std::int64_t count_of(const Status& status, Handle type) const {
    if (functions_.large_counts) {
      std::int64_t count = 0;
      as<int(const void*, Handle, std::int64_t*)>(functions_.get_count)(&status, type, &count);
      return count;
    }
    int count = 0;
    as<int(const void*, Handle, int*)>(functions_.get_count)(&status, type, &count);
    return count;
  }

  int call(Handle comm, Transfer& t) {
    void* function = functions_.start[static_cast<int>(t.verb)];
    const void* send = t.send ? t.send : functions_.in_place;
    void* receive = t.receive ? t.receive : functions_.in_place;
    void* request = &t.request;
    const Handle root = static_cast<Handle>(t.peer);
    switch (t.verb) {
      case Verb::all_reduce:
      case Verb::reduce_scatter:
        return as<int(const void*, void*, std::int64_t, Handle, Handle, Handle, void*)>(function)(
            send, t.receive, t.count, t.type, t.op, comm, request);
      case Verb::reduce:
        return as<int(const void*, void*, std::int64_t, Handle, Handle, Handle, Handle, void*)>(function)(
            send, t.receive, t.count, t.type, t.op, root, comm, request);
      case Verb::broadcast:
        return as<int(void*, std::int64_t, Handle, Handle, Handle, void*)>(function)(
            t.receive ? t.receive : const_cast<void*>(t.send), t.count, t.type, root, comm, request);
      case Verb::all_gather:
      case Verb::all_to_all:
        return as<int(const void*, std::int64_t, Handle, void*, std::int64_t, Handle, Handle, void*)>(function)(
            send, t.count, t.type, t.receive, t.count, t.type, comm, request);
      case Verb::gather:
        return as<int(const void*, std::int64_t, Handle, void*, std::int64_t, Handle, Handle, Handle, void*)>(function)(
            send, t.count, t.type, t.receive, t.count, t.type, root, comm, request);
      case Verb::scatter:
        return as<int(const void*, std::int64_t, Handle, void*, std::int64_t, Handle, Handle, Handle, void*)>(function)(
            t.send, t.count, t.type, receive, t.count, t.type, root, comm, request);
      case Verb::send:
        return as<int(const void*, std::int64_t, Handle, Handle, Handle, Handle, void*)>(function)(
            t.send, t.count, t.type, root, tag, comm, request);
      case Verb::receive:
        return as<int(void*, std::int64_t, Handle, Handle, Handle, Handle, void*)>(function)(t.receive, t.count, t.type,
                                                                                             root, tag, comm, request);
      case Verb::barrier:
        return as<int(Handle, void*)>(function)(comm, request);
    }
    return 0;
  }

  std::string text_of(int code) const {
    char text[1024] = {};
    int length = 0;
    as<int(int, char*, int*)>(functions_.error_string)(code, text, &length);
    const std::string said(text, strnlen(text, sizeof text));
    return said.empty() ? "MPI returned the error " + std::to_string(code) : said;
  }

  const MpiFunctions functions_;
};

}  // namespace

Ref<Transport> make_mpi_transport(const MpiFunctions& functions) { return make_ref<MpiTransport>(functions); }

}  // namespace anabranch
