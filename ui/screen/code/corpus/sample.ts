// The types of a small store.
export interface Item {
  readonly id: number;
  name: string;
  tags?: string[];
}

type Key = keyof Item;

/* Items by their number. */
export class Store<T extends Item> {
  private items = new Map<number, T>();

  public add(item: T): void {
    if (this.items.has(item.id)) {
      throw new Error("already there: " + item.id);
    }
    this.items.set(item.id, item);
  }

  get(id: number): T | undefined {
    return this.items.get(id);
  }

  async load(path: string): Promise<void> {
    const text = await fetch(path);
    for (const item of (await text.json()) as T[]) {
      this.add(item);
    }
  }
}

enum State { Open = 1, Closed = 2 }
const first: State = State.Open;
