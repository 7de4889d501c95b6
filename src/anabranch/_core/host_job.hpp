#pragma once

#include <Python.h>

#include "anabranch/graph/graph.hpp"
#include "anabranch/runtime.hpp"
#include "anabranch/stream/host.hpp"

namespace anabranch::python {

enum class JobKind { call, notice, discard, give_back, replay };

// A job for a host thread on a Python object. Owns a reference to the object, except for a `replay`.
struct PythonJob : HostJob {
  PythonJob(JobKind kind, PyObject* object) : kind(kind), object(object) {}
  const JobKind kind;
  PyObject* object;
  Ref<Failure> error;  // set if the operation failed, or was skipped because its stream had failed
};

// A host function in stream order: holds the stream until a host thread has called it.
struct HostCall final : HostOperation, PythonJob {
  explicit HostCall(PyObject* object) : PythonJob(JobKind::call, object) {}
  bool calls() const noexcept override { return true; }
  void start() noexcept override {
    retain();
    host_inbox().post(this);
  }
  void skip(const Ref<Failure>& reason) noexcept override {
    error = reason;
    start();
  }
};

// Posts a job to a host thread when a point is reached or has failed.
struct Notice final : Waiter, PythonJob {
  explicit Notice(PyObject* object) : PythonJob(JobKind::notice, object) {}
  void wake(const Ref<Failure>&) noexcept override { host_inbox().post(this, true); }
};

// Whether this thread may touch Python objects now. PyGILState_Check is true for every thread once a second interpreter
// has existed. These modules are in one interpreter only, so threads of others never get here.
inline bool runs_python() noexcept {
#if PY_VERSION_HEX >= 0x030D0000
  return PyThreadState_GetUnchecked() != nullptr;
#elif PY_VERSION_HEX >= 0x030C0000
  return _PyThreadState_UncheckedGet() != nullptr;
#else
  // The unchecked state belongs to whichever thread holds the lock.
  PyThreadState* running = _PyThreadState_UncheckedGet();
  return running && running == PyGILState_GetThisThreadState();
#endif
}

// Drops the reference that kept an object alive while a stream used its memory: at once on a Python thread; through a
// host thread on a worker, which must not take the interpreter lock.
inline void discard(void* object) noexcept {
  if (runs_python() && !posts_quietly()) {
    Py_DECREF(static_cast<PyObject*>(object));
  } else {
    host_inbox().post(new PythonJob(JobKind::discard, static_cast<PyObject*>(object)), true);
  }
}

// Sets the current exception aside for its lifetime, so that any Python code may run.
class RaisedAside {
 public:
#if PY_VERSION_HEX >= 0x030C0000
  RaisedAside() noexcept : raised_(PyErr_GetRaisedException()) {}
  ~RaisedAside() { PyErr_SetRaisedException(raised_); }

 private:
  PyObject* raised_;
#else
  RaisedAside() noexcept { PyErr_Fetch(&type_, &value_, &traceback_); }
  ~RaisedAside() { PyErr_Restore(type_, value_, traceback_); }

 private:
  PyObject* type_;
  PyObject* value_;
  PyObject* traceback_;
#endif
};

// Drops the reference to an owner of memory through `give_back`, which takes the reference: at once, or through a host
// thread as `discard`. The object's finalizer would not do: without the interpreter lock it runs on the thread that
// created the object, which may be asleep, or on a later thread with the same identifier.
inline void discard_owner(void* object, void (*give_back)(PyObject*)) noexcept {
  if (runs_python() && !posts_quietly()) {
    const RaisedAside aside;
    give_back(static_cast<PyObject*>(object));
  } else {
    host_inbox().post(new PythonJob(JobKind::give_back, static_cast<PyObject*>(object)), true);
  }
}

// A host function of a graph, and one call of it in a replay. The call keeps the function alive.
class GraphCall final : public HostWork {
 public:
  explicit GraphCall(PyObject* object) : object_(object) { Py_INCREF(object); }
  ~GraphCall() override { discard(object_); }
  PyObject* object() const noexcept { return object_; }
  Ref<HostOperation> make(const Ref<RefCounted>& context) noexcept override;

 private:
  PyObject* object_;
};

struct ReplayedCall final : HostOperation, PythonJob {
  ReplayedCall(GraphCall& call, Ref<RefCounted> context)
      : PythonJob(JobKind::replay, call.object()), call(Ref<GraphCall>::share(&call)), context(std::move(context)) {}
  bool calls() const noexcept override { return true; }
  void start() noexcept override {
    retain();
    host_inbox().post(this);
  }
  void skip(const Ref<Failure>& reason) noexcept override {
    error = reason;
    start();
  }
  const Ref<GraphCall> call;
  const Ref<RefCounted> context;
};

inline Ref<HostOperation> GraphCall::make(const Ref<RefCounted>& context) noexcept {
  return make_ref<ReplayedCall>(*this, context);
}
// A Python object owned by the core: the origin of a node or the context of a replay.
class PythonObject final : public RefCounted {
 public:
  explicit PythonObject(PyObject* object) : object_(object) { Py_INCREF(object); }
  ~PythonObject() override { discard(object_); }
  PyObject* object() const noexcept { return object_; }

 private:
  PyObject* object_;
};
// None becomes no context.
inline Ref<RefCounted> as_context(PyObject* object) {
  return object == Py_None ? nullptr : make_ref<PythonObject>(object);
}
inline PyObject* context_of(const ReplayedCall& call) {
  PyObject* object = call.context ? static_cast<PythonObject&>(*call.context).object() : Py_None;
  Py_INCREF(object);
  return object;
}
inline Ref<HostWork> make_graph_call(PyObject* object) { return make_ref<GraphCall>(object); }

inline Ref<Failure> make_failure(const std::string& message, PyObject* payload) {
  Py_XINCREF(payload);
  return make_ref<Failure>(message, payload, payload ? &discard : nullptr);
}

// A compiled kernel. Keeps the owner of its code alive.
class PythonKernel final : public Kernel {
 public:
  PythonKernel(void* code, std::string name, std::vector<KernelPlace> places, const BlockSizes& block, PyObject* keep)
      : Kernel(code, std::move(name), std::move(places), block), keep_(keep) {
    Py_INCREF(keep);
  }
  ~PythonKernel() override { discard(keep_); }

 private:
  PyObject* keep_;
};

inline Ref<Kernel> make_kernel(void* code, const std::string& name, const std::vector<KernelPlace>& places,
                               const BlockSizes& block, PyObject* keep) {
  return make_ref<PythonKernel>(code, name, places, block, keep);
}

// -- for the host threads --
inline HostCall* make_call(PyObject* object) { return new HostCall(object); }
inline Notice* make_notice(PyObject* object) { return new Notice(object); }
inline PythonJob* next_job(PythonJob* job) { return static_cast<PythonJob*>(job->next_job); }
inline PythonJob* take_job() { return static_cast<PythonJob*>(host_inbox().take()); }
inline PythonJob* try_take_job() { return static_cast<PythonJob*>(host_inbox().try_take()); }
inline HostCall* as_call(PythonJob* job) { return static_cast<HostCall*>(job); }
inline ReplayedCall* as_replayed(PythonJob* job) { return static_cast<ReplayedCall*>(job); }
inline void delete_job(PythonJob* job) {
  if (job->kind == JobKind::notice) {
    delete static_cast<Notice*>(job);
  } else {
    delete job;
  }
}
// With the interpreter lock. The thread takes the next function of the stream itself; no object of Python's is released
// meanwhile.
inline void complete_quietly(HostOperation& operation) {
  posts_quietly() = true;
  operation.complete();
  posts_quietly() = false;
}

inline Ref<HostOperation> make_gate() { return make_ref<HostOperation>(); }
inline Ref<HostOperation> as_pending(HostCall* call) { return Ref<HostOperation>::share(call); }
// Throws the oldest failure of a stream that ended before anything raised it, if there is one.
inline void throw_unraised(Backend& backend) {
  if (Ref<Failure> failure = backend.unraised().take()) throw AsyncError(std::move(failure));
}

}  // namespace anabranch::python
