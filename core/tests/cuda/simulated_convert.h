/* What the kernel `convert` of core/src/cuda does with an element. */
#pragma once

#include <stdint.h>
#include <string.h>

__extension__ typedef _Float16 half;

/* As in anabranch/memory/layout.hpp. */
enum type {
  type_boolean = 1,
  type_int8,
  type_int16,
  type_int32,
  type_int64,
  type_uint8,
  type_uint16,
  type_uint32,
  type_uint64,
  type_float16,
  type_float32,
  type_float64,
  type_complex64,
  type_complex128
};

struct number {
  enum { signed_number, unsigned_number, floating_number } kind;
  int64_t whole;
  uint64_t large;
  double real, imaginary;
};

#define READ(T, kind_, member)      \
  {                                 \
    T item;                         \
    memcpy(&item, at, sizeof item); \
    number.kind = kind_;            \
    number.member = item;           \
    return number;                  \
  }

#define READ_PAIR(T)                 \
  {                                  \
    T items[2];                      \
    memcpy(items, at, sizeof items); \
    number.kind = floating_number;   \
    number.real = items[0];          \
    number.imaginary = items[1];     \
    return number;                   \
  }

static struct number read_number(const char* at, int type) {
  struct number number = {.kind = signed_number};
  switch (type) {
    case type_boolean:
      number.whole = *at != 0;
      return number;
    case type_int8:
      READ(int8_t, signed_number, whole)
    case type_int16:
      READ(int16_t, signed_number, whole)
    case type_int32:
      READ(int32_t, signed_number, whole)
    case type_int64:
      READ(int64_t, signed_number, whole)
    case type_uint8:
      READ(uint8_t, signed_number, whole)
    case type_uint16:
      READ(uint16_t, signed_number, whole)
    case type_uint32:
      READ(uint32_t, signed_number, whole)
    case type_uint64:
      READ(uint64_t, unsigned_number, large)
    case type_float16:
      READ(half, floating_number, real)
    case type_float32:
      READ(float, floating_number, real)
    case type_float64:
      READ(double, floating_number, real)
    case type_complex64:
      READ_PAIR(float)
    default:
      READ_PAIR(double)
  }
}

static int64_t whole_of(const struct number* number) {
  if (number->kind == signed_number) return number->whole;
  if (number->kind == unsigned_number) return (int64_t)number->large;
  if (number->real != number->real) return 0;
  if (number->real >= 0x1p63) return INT64_MAX;
  return number->real < -0x1p63 ? INT64_MIN : (int64_t)number->real;
}

static uint64_t large_of(const struct number* number) {
  if (number->kind == unsigned_number) return number->large;
  if (number->kind == signed_number || !(number->real > 0)) return (uint64_t)whole_of(number);
  return number->real >= 0x1p64 ? UINT64_MAX : (uint64_t)number->real;
}

static double double_of(const struct number* number) {
  if (number->kind == floating_number) return number->real;
  return number->kind == signed_number ? (double)number->whole : (double)number->large;
}

static float float_of(const struct number* number) {
  if (number->kind == floating_number) return (float)number->real;
  return number->kind == signed_number ? (float)number->whole : (float)number->large;
}

#define WRITE(T, value)             \
  {                                 \
    const T item = (T)(value);      \
    memcpy(at, &item, sizeof item); \
    return;                         \
  }

static void write_number(char* at, int type, const struct number* number) {
  switch (type) {
    case type_boolean:
      WRITE(uint8_t, double_of(number) != 0 || number->imaginary != 0)
    case type_int8:
    case type_uint8:
      WRITE(uint8_t, whole_of(number))
    case type_int16:
    case type_uint16:
      WRITE(uint16_t, whole_of(number))
    case type_int32:
    case type_uint32:
      WRITE(uint32_t, whole_of(number))
    case type_int64:
      WRITE(int64_t, whole_of(number))
    case type_uint64:
      WRITE(uint64_t, large_of(number))
    case type_float16:
      if (number->kind == floating_number) WRITE(half, number->real)
      WRITE(half, float_of(number))
    case type_float32:
      WRITE(float, float_of(number))
    case type_float64:
      WRITE(double, double_of(number))
    case type_complex64: {
      const float items[2] = {float_of(number), (float)number->imaginary};
      memcpy(at, items, sizeof items);
      return;
    }
    default: {
      const double items[2] = {double_of(number), number->imaginary};
      memcpy(at, items, sizeof items);
    }
  }
}
