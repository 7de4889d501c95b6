#pragma once

namespace anabranch {
class Event;
class Stream;
struct Touch;
}  // namespace anabranch

namespace anabranch::explore {

// Call these during an exploration, before the host does it. The result may depend on what other threads of the host
// did before: if no order is known between the two, the exploration is not complete. It accesses memory itself.
void host_accesses(const Touch& touch);
// It records the event, which stands for what the stream has got so far.
void host_records(const Event& event, const Stream& stream);
// It looks at the last record.
void host_reads(const Event& event);

}  // namespace anabranch::explore
