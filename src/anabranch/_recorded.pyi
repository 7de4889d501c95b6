from anabranch._graph import Node as Node
