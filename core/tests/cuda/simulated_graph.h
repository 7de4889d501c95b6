/* The graphs of the simulated driver. A replay runs the nodes one after the other, in any order that their dependencies
 * allow, so that one that is missing is noticed. Included there, once. */
#pragma once

#include "simulated_kernels.h"
#include "simulated_memory.h"

/* As in cuda.h. */

struct kernel_parameters {
  struct function* function;
  unsigned grid[3], block[3], shared_memory;
  void** parameters;
  void *extra, *kernel, *context;
};

struct copy_side {
  size_t x, y, z, lod;
  int type; /* 4: unified */
  void* host;
  uint64_t device;
  void *array, *reserved;
  size_t pitch, height;
};

struct copy_parameters {
  struct copy_side from, to;
  size_t width, height, depth;
};

struct set_parameters {
  uint64_t to;
  size_t pitch;
  unsigned value, itemsize;
  size_t width, height;
};

struct node_parameters {
  int type, reserved0[3]; /* 13: conditional */
  union {
    long long reserved1[29];
    struct {
      unsigned* handle;
      int type; /* 0: if; 1: while */
      unsigned size;
      struct graph** bodies;
      struct device* context;
    } conditional;
  };
  long long reserved2;
};

/* Graphs */

struct node {
  enum { kernel_node, copy_node, set_node, empty_node, conditional_node, child_node } kind;
  struct graph* graph;
  size_t number;
  struct node** after;
  size_t after_count;
  struct device* device;              /* where it runs */
  struct device *to_home, *from_home; /* whose memory it uses */
  struct work work;
  unsigned* condition;
  int loops;
  struct graph* body;
};

struct graph {
  struct node** nodes; /* each after those that it comes after */
  size_t count;
};

static struct graph* new_graph(void) { return calloc(1, sizeof(struct graph)); }

static void let_go_graph(struct graph* graph) {
  for (size_t i = 0; i < graph->count; ++i) {
    if (graph->nodes[i]->body) let_go_graph(graph->nodes[i]->body);
    free(graph->nodes[i]->after);
    free(graph->nodes[i]);
  }
  free(graph->nodes);
  free(graph);
}

/* Stays, since replays may be under way. */
static uint64_t new_condition(unsigned value) {
  unsigned* condition = malloc(sizeof *condition);
  *condition = value;
  return (uint64_t)(uintptr_t)condition;
}

static int add_node(struct node** made, struct graph* graph, struct node** after, size_t count, struct node node) {
  for (size_t i = 0; i < count; ++i) {
    if (!after[i] || after[i]->graph != graph) return invalid_value;
    for (size_t k = 0; k < i; ++k)
      if (after[k] == after[i]) return invalid_value;
  }
  node.graph = graph;
  node.number = graph->count;
  node.after = malloc((count + 1) * sizeof *node.after);
  node.after_count = count;
  if (count > 0) memcpy(node.after, after, count * sizeof *after);
  *made = malloc(sizeof **made);
  **made = node;
  graph->nodes = realloc(graph->nodes, (graph->count + 1) * sizeof *graph->nodes);
  graph->nodes[graph->count++] = *made;
  return 0;
}

static int read_kernel(struct node* node, const struct kernel_parameters* parameters) {
  const unsigned *grid = parameters->grid, *block = parameters->block;
  const unsigned threads = block[0] * block[1] * block[2];
  if (!parameters->function || grid[0] * grid[1] * grid[2] == 0 || threads == 0 || threads > 1024) return invalid_value;
  *node = (struct node){.kind = kernel_node, .device = parameters->function->device};
  node->work = kernel_work(parameters->function, parameters->parameters);
  return 0;
}

static int read_copy(struct node* node, const struct copy_parameters* parameters, struct device* context) {
  const uint64_t to = parameters->to.device, from = parameters->from.device;
  if (!context || !reaches(context, to) || !reaches(context, from)) return invalid_value;
  if (parameters->to.type != 4 || parameters->from.type != 4) return invalid_value;
  if (parameters->width == 0 || parameters->height != 1 || parameters->depth != 1) return invalid_value;
  *node = (struct node){.kind = copy_node, .device = context, .to_home = device_of(to), .from_home = device_of(from)};
  node->work = copy_work(to, from, parameters->width);
  return 0;
}

static int read_set(struct node* node, const struct set_parameters* parameters, struct device* context) {
  const unsigned itemsize = parameters->itemsize;
  if (!context || !reaches(context, parameters->to)) return invalid_value;
  if (parameters->width == 0 || parameters->height != 1 || parameters->to % itemsize != 0) return invalid_value;
  if (itemsize != 1 && itemsize != 2 && itemsize != 4) return invalid_value;
  *node = (struct node){.kind = set_node, .device = context, .to_home = device_of(parameters->to)};
  node->work = set_work(parameters->to, parameters->value, itemsize, parameters->width);
  return 0;
}

static int add_conditional(struct node** made, struct graph* graph, struct node** after, size_t count,
                           struct node_parameters* parameters) {
  if (parameters->type != 13 || parameters->conditional.size != 1) return invalid_value;
  if (!parameters->conditional.handle || !parameters->conditional.context) return invalid_value;
  struct node node = {.kind = conditional_node, .device = parameters->conditional.context};
  node.condition = parameters->conditional.handle;
  node.loops = parameters->conditional.type == 1;
  node.body = new_graph();
  const int wrong = add_node(made, graph, after, count, node);
  if (wrong) let_go_graph(node.body);
  if (!wrong) parameters->conditional.bodies = &(*made)->body;
  return wrong;
}

static struct graph* copy_graph(const struct graph* graph) {
  struct graph* copy = new_graph();
  for (size_t i = 0; i < graph->count; ++i) {
    struct node node = *graph->nodes[i], *made;
    struct node* after[16];
    for (size_t k = 0; k < node.after_count; ++k) after[k] = copy->nodes[node.after[k]->number];
    if (node.body) node.body = copy_graph(node.body);
    add_node(&made, copy, after, node.after_count, node);
  }
  return copy;
}

static int add_child(struct node** made, struct graph* graph, struct node** after, size_t count,
                     const struct graph* child) {
  struct node node = {.kind = child_node, .body = copy_graph(child)};
  if (child->count > 0) node.device = child->nodes[0]->device;
  const int wrong = add_node(made, graph, after, count, node);
  if (wrong) let_go_graph(node.body);
  return wrong;
}

/* What is captured from a stream: copies alone, one after the other. */
static int capture_copy(struct stream* stream, uint64_t to, uint64_t from, size_t bytes) {
  struct node node = {
      .kind = copy_node, .device = stream->device, .to_home = device_of(to), .from_home = device_of(from)};
  node.work = copy_work(to, from, bytes);
  struct graph* graph = stream->captured;
  return add_node(&(struct node*){NULL}, graph, graph->count ? &graph->nodes[graph->count - 1] : NULL,
                  graph->count ? 1 : 0, node);
}

/* The nodes of conditional bodies are all of one context. */
static int is_valid(const struct graph* graph, const struct device* only) {
  for (size_t i = 0; i < graph->count; ++i) {
    const struct node* node = graph->nodes[i];
    if (only && node->kind != empty_node && node->device != only) return 0;
    if (node->kind == conditional_node && !is_valid(node->body, node->device)) return 0;
  }
  return 1;
}

/* Executable graphs: a copy of the nodes, and one more for each replay. */

struct step {
  const struct node* node; /* as a name: it may be gone */
  struct node now;
  size_t* after;
  struct plan* body;
};

struct plan {
  size_t count;
  struct step steps[];
};

static struct plan* new_plan(const struct graph* graph) {
  struct plan* plan = calloc(1, sizeof *plan + graph->count * sizeof *plan->steps);
  plan->count = graph->count;
  for (size_t i = 0; i < graph->count; ++i) {
    const struct node* node = graph->nodes[i];
    plan->steps[i] = (struct step){.node = node, .now = *node};
    plan->steps[i].after = malloc((node->after_count + 1) * sizeof(size_t));
    for (size_t k = 0; k < node->after_count; ++k) plan->steps[i].after[k] = node->after[k]->number;
    if (node->body) plan->steps[i].body = new_plan(node->body);
  }
  return plan;
}

static struct plan* copy_plan(const struct plan* plan) {
  const size_t size = sizeof *plan + plan->count * sizeof *plan->steps;
  struct plan* copy = malloc(size);
  memcpy(copy, plan, size);
  for (size_t i = 0; i < plan->count; ++i) {
    const struct step* step = &plan->steps[i];
    copy->steps[i].after = malloc((step->now.after_count + 1) * sizeof(size_t));
    memcpy(copy->steps[i].after, step->after, step->now.after_count * sizeof(size_t));
    if (step->body) copy->steps[i].body = copy_plan(step->body);
  }
  return copy;
}

static void let_go_plan(struct plan* plan) {
  for (size_t i = 0; i < plan->count; ++i) {
    if (plan->steps[i].body) let_go_plan(plan->steps[i].body);
    free(plan->steps[i].after);
  }
  free(plan);
}

static struct step* find_step(struct plan* plan, const struct node* node) {
  for (size_t i = 0; i < plan->count; ++i) {
    struct step* step = &plan->steps[i];
    struct step* found = step->node == node ? step : step->body ? find_step(step->body, node) : NULL;
    if (found) return found;
  }
  return NULL;
}

/* Neither the context nor whose memory it is may change, nor the size of the elements that are set. */
static int change_node(struct plan* plan, const struct node* node, const struct node* changed) {
  struct step* step = find_step(plan, node);
  if (!step || step->now.kind != changed->kind || step->now.device != changed->device) return invalid_value;
  if (step->now.to_home != changed->to_home || step->now.from_home != changed->from_home) return invalid_value;
  if (changed->kind == set_node && step->now.work.itemsize != changed->work.itemsize) return invalid_value;
  step->now.work = changed->work;
  return 0;
}

static int may_run(const struct step* step, const char* done) {
  for (size_t i = 0; i < step->now.after_count; ++i)
    if (!done[step->after[i]]) return 0;
  return 1;
}

static void run_step(struct step* step) {
  if (step->now.kind == child_node) return run_plan(step->body);
  if (step->now.kind != conditional_node) return run(&step->now.work);
  while (*step->now.condition) {
    run_plan(step->body);
    if (!step->now.loops) break;
  }
}

static void run_plan(struct plan* plan) {
  static unsigned random;
  char* done = calloc(plan->count + 1, 1);
  for (size_t left = plan->count; left > 0; --left) {
    random = random * 1103515245 + 12345;
    size_t i = (random >> 8) % plan->count;
    while (done[i] || !may_run(&plan->steps[i], done)) i = (i + 1) % plan->count;
    run_step(&plan->steps[i]);
    done[i] = 1;
  }
  free(done);
}
