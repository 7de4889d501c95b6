/* The benchmarks of events. */
#include "driver.h"

static CUevent event, other_event;
static CUevent begin_time, end_time;

CUresult set_up_events(void) {
  TRY(cu.cuEventCreate(&event, CU_EVENT_DISABLE_TIMING));
  TRY(cu.cuEventCreate(&other_event, CU_EVENT_DISABLE_TIMING));
  return cu.cuEventRecord(event, first);
}

CUresult event_record(long calls) {
  for (long i = 0; i < calls; ++i) TRY(cu.cuEventRecord(event, first));
  return CUDA_SUCCESS;
}

/* Each of two streams waits for the other in turn, so that every wait is for something new. */
CUresult event_record_wait(long calls) {
  for (long i = 0; i < calls; ++i) {
    const int odd = i % 2;
    const CUevent mark = odd ? other_event : event;
    TRY(cu.cuEventRecord(mark, odd ? second : first));
    TRY(cu.cuStreamWaitEvent(odd ? first : second, mark, 0));
  }
  return CUDA_SUCCESS;
}

CUresult event_query(long calls) {
  for (long i = 0; i < calls; ++i) TRY(cu.cuEventQuery(event));
  return CUDA_SUCCESS;
}

CUresult open_times(void) {
  TRY(cu.cuEventCreate(&begin_time, CU_EVENT_DEFAULT));
  TRY(cu.cuEventCreate(&end_time, CU_EVENT_DEFAULT));
  TRY(cu.cuEventRecord(begin_time, first));
  TRY(cu.cuEventRecord(end_time, first));
  return cu.cuCtxSynchronize();
}

CUresult close_times(void) {
  TRY(cu.cuEventDestroy(begin_time));
  return cu.cuEventDestroy(end_time);
}

CUresult event_elapsed_time(long calls) {
  float milliseconds;
  for (long i = 0; i < calls; ++i) TRY(cu.cuEventElapsedTime(&milliseconds, begin_time, end_time));
  return CUDA_SUCCESS;
}

CUresult event_create_destroy(long calls) {
  for (long i = 0; i < calls; ++i) {
    CUevent made;
    TRY(cu.cuEventCreate(&made, CU_EVENT_DISABLE_TIMING));
    TRY(cu.cuEventDestroy(made));
  }
  return CUDA_SUCCESS;
}

CUresult event_create_record_destroy(long calls) {
  for (long i = 0; i < calls; ++i) {
    CUevent made;
    TRY(cu.cuEventCreate(&made, CU_EVENT_DISABLE_TIMING));
    TRY(cu.cuEventRecord(made, first));
    TRY(cu.cuEventDestroy(made));
  }
  return CUDA_SUCCESS;
}
