#pragma once

#include <atomic>
#include <cstdint>
#include <utility>

namespace anabranch {

// An object that counts the references to it. Counting is safe from any thread. When the last reference goes, `dispose`
// runs on the thread that dropped it; it deletes the object unless a class keeps its objects for reuse.
class RefCounted {
 public:
  RefCounted() = default;
  RefCounted(const RefCounted&) = delete;
  RefCounted& operator=(const RefCounted&) = delete;

  void retain() noexcept { count_.fetch_add(1, std::memory_order_relaxed); }

  void release() noexcept {
    if (count_.fetch_sub(1, std::memory_order_acq_rel) == 1) dispose();
  }

  // Whether the caller's reference is the only one. Stays true only if nobody else can get at that one.
  bool unique() const noexcept { return count_.load(std::memory_order_acquire) == 1; }

  // Whether the last reference is gone, so that it is about to end.
  bool ending() const noexcept { return count_.load(std::memory_order_acquire) == 0; }

  // Takes a reference unless the last one is already gone. For registries that list objects without owning them.
  bool try_retain() noexcept {
    std::uint32_t count = count_.load(std::memory_order_relaxed);
    while (count != 0) {
      if (count_.compare_exchange_weak(count, count + 1, std::memory_order_acquire, std::memory_order_relaxed))
        return true;
    }
    return false;
  }

 protected:
  // Both run in `release`, on the thread that drops the last reference: a Python thread with or without the interpreter
  // lock, a worker, the poller. `try_retain` fails by then. The caller may hold only locks that the class's own comment
  // allows, none if it has no comment; so code under a lock moves references out and drops them after unlocking.
  virtual ~RefCounted() = default;
  virtual void dispose() noexcept { delete this; }

  // For a class whose `dispose` keeps the object: gives it its first reference again.
  void revive() noexcept { count_.store(1, std::memory_order_relaxed); }

 private:
  std::atomic<std::uint32_t> count_{1};
};

// A counted reference. `Ref<T>::take` adopts the reference that `new T` starts with; `Ref<T>::share` adds one.
template <class T>
class Ref {
 public:
  Ref() = default;
  Ref(std::nullptr_t) {}
  Ref(const Ref& other) noexcept : object_(other.object_) {
    if (object_) object_->retain();
  }
  Ref(Ref&& other) noexcept : object_(std::exchange(other.object_, nullptr)) {}
  template <class U>
  Ref(Ref<U> other) noexcept : object_(other.leak()) {}
  Ref& operator=(Ref other) noexcept {
    std::swap(object_, other.object_);
    return *this;
  }
  // See `dispose` for threads and locks.
  ~Ref() {
    if (object_) object_->release();
  }

  static Ref take(T* object) noexcept {
    Ref ref;
    ref.object_ = object;
    return ref;
  }
  static Ref share(T* object) noexcept {
    if (object) object->retain();
    return take(object);
  }

  T* get() const noexcept { return object_; }
  T& operator*() const noexcept { return *object_; }
  T* operator->() const noexcept { return object_; }
  explicit operator bool() const noexcept { return object_ != nullptr; }
  bool operator==(const Ref& other) const noexcept { return object_ == other.object_; }

  // Gives the reference to the caller, who must release it.
  T* leak() noexcept { return std::exchange(object_, nullptr); }
  void reset() noexcept { *this = Ref(); }

 private:
  T* object_ = nullptr;
};

template <class T, class... Args>
Ref<T> make_ref(Args&&... args) {
  return Ref<T>::take(new T(std::forward<Args>(args)...));
}

}  // namespace anabranch
